// The tab Compare: its address, and the counts of the four ways as buttons.
(() => {
  // The address names the runs while the tab is open.
  const compared = (element, watch) => {
    const sync = () => {
      const ids = element.querySelector("[data-compared]")?.dataset.compared, url = new URL(location.href);
      if (!ids || !element.offsetParent || url.searchParams.get("compare") === ids) return;
      url.searchParams.set("tab", "compare");
      url.searchParams.set("compare", ids);
      history.replaceState(null, "", url);
    };
    watch("value", () => requestAnimationFrame(sync));
    new IntersectionObserver(sync).observe(element); // it comes into view, also with its tab
  };

  const ways = (element, watch, trigger) => {
    let focus = "";
    element.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      focus = button.dataset.key || "";
      if ("clear" in button.dataset) return trigger("clear", {});
      trigger("mark", { column: button.dataset.column, mark: button.dataset.mark });
    });
    watch("value", () => requestAnimationFrame(() => {
      if (focus && document.activeElement === document.body) element.querySelector(`[data-key="${focus}"]`)?.focus();
      focus = "";
    }));
  };

  Object.assign(window.spt, { compared, ways });
})();
