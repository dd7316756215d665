"""spt: soft-prompt tuning for fair and efficient LLM benchmark evaluation (arXiv:2606.12117)."""
