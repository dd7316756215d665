// Everything the page does in the browser. A few functions, called from `js_on_load` of their components.
(() => {
  const css = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

  // Figures name colours and fonts by CSS variable ("--soft"); here they become values of the current theme.
  const resolve = (node) => {
    if (typeof node === "string") return node.startsWith("--") ? css(node) || "#888" : node;
    if (Array.isArray(node)) return node.map(resolve);
    if (node && typeof node === "object")
      return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, resolve(value)]));
    return node;
  };

  // `over` on `base`, all the way down. What goes over a list names its places: {0: …, 2: …}.
  const merge = (base, over) => {
    const out = Array.isArray(base) ? [...base] : { ...base };
    for (const [key, value] of Object.entries(over || {}))
      out[key] = value && typeof value === "object" && !Array.isArray(value) ? merge(base[key] || {}, value) : value;
    return out;
  };

  const draw = (plot, figure, step = null) => {
    if (!window.Plotly || !figure || !figure.data || !plot.clientWidth) return;
    const layout = plot.clientWidth < 620 ? merge(figure.layout, figure.narrow) : figure.layout;
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", figure.label || "");
    plot.style.height = layout.height + "px";
    const shapes = [...(layout.shapes || []), ...(step === null ? [] : line(layout, step))];
    window.Plotly.react(plot, resolve(figure.data), resolve({ ...layout, shapes, width: plot.clientWidth }), {
      displaylogo: false, displayModeBar: false, responsive: false,
    });
  };

  // An upright line at one step, through every panel.
  const line = (layout, step) => Object.keys(layout).filter((key) => key.startsWith("xaxis")).map((key) => ({
    type: "line", xref: "x" + key.slice(5), yref: `y${key.slice(5)} domain`, x0: step, x1: step, y0: 0, y1: 1, layer: "above",
    line: { color: "--ink", width: 2.5 },
  }));

  // What draws each chart of the page again: for a new theme, once Plotly is there, and as the playback moves its line.
  const charts = new Set();
  let step = null;
  const all = () => charts.forEach((again) => again());
  const cursor = (to) => {
    if (to === step) return;
    step = to;
    requestAnimationFrame(all);
  };
  // Plotly may come after the page has loaded, and then no event of the page tells of it.
  const looking = setInterval(() => {
    if (!window.Plotly) return;
    clearInterval(looking);
    all();
    new MutationObserver(all).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  }, 50);

  // One Plotly div, drawn in place: a new figure, a new theme or a new width never mounts a second chart.
  const chart = (element, props, watch) => {
    const plot = element.querySelector(".plot");
    let width = 0;
    const again = () => {
      if (plot.isConnected) return draw(plot, props.value, props.value?.still ? null : step);
      charts.delete(again);
      sized.disconnect();
    };
    const sized = new ResizeObserver(() => {
      if (Math.abs(plot.clientWidth - width) > 1) { width = plot.clientWidth; again(); }
    });
    charts.add(again);
    watch("value", again);
    sized.observe(plot);
    again();
  };

  // The address bar follows the run that is shown, and so does the title of the tab.
  const follow = (element, watch) => {
    const sync = () => {
      const shown = element.querySelector("[data-run]");
      document.title = shown ? shown.dataset.title : "spt";
      const url = new URL(location.href);
      if (!shown || url.searchParams.get("run") === shown.dataset.run) return;
      url.searchParams.set("run", shown.dataset.run);
      url.searchParams.delete("tab"); // a run that is opened is opened in its own tab
      history.pushState(null, "", url);
    };
    watch("value", sync);
    sync();
    window.addEventListener("popstate", () => location.reload());
  };

  // So does the tab that is open; "run" is the one without a name in the address.
  let loading = true; // the first tab is selected by the page itself, before the address could choose another
  const tab = (name) => {
    if (loading) return void (loading = false);
    const url = new URL(location.href);
    if (name === "run") url.searchParams.delete("tab");
    else url.searchParams.set("tab", name);
    if (name !== "compare") url.searchParams.delete("compare");
    if (url.href !== location.href) history.replaceState(null, "", url);
  };

  // A plain click on a link to a run or to the tab of all runs opens it in this page; every other click is the browser's own.
  const links = (element, trigger) => {
    element.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-open], a[data-tab], a[data-compare]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      if (link.dataset.tab) return trigger("tab", {});
      if (link.dataset.compare) trigger("compare", { runs: link.dataset.compare });
      else trigger("pick", { run: link.dataset.open });
      window.scrollTo({ top: 0, behavior: "smooth" });
    });
  };

  const copy = (element) => {
    element.addEventListener("click", async (event) => {
      const button = event.target.closest("button[data-copy]");
      if (!button) return;
      const text = element.querySelector("code").textContent;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        // No clipboard outside a secure context (a page served by address): select it, so that Ctrl+C copies.
        getSelection().selectAllChildren(element.querySelector("code"));
        return;
      }
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    });
  };

  const theme = (element) => {
    element.addEventListener("click", (event) => {
      if (!event.target.closest("button[data-theme]")) return;
      const dark = document.body.classList.toggle("dark");
      localStorage.setItem("spt-theme", dark ? "dark" : "light");
    });
    const chosen = localStorage.getItem("spt-theme");
    if (chosen) document.body.classList.toggle("dark", chosen === "dark");
  };

  window.spt = { chart, cursor, draw, merge, follow, tab, links, copy, theme };
})();
