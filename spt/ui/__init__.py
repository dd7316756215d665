"""The page. It reads run folders and starts runs; it imports no torch and computes nothing itself."""
