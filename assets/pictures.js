// A chart as a PNG or SVG file: as it is drawn, on the page's colour, with a title and a key of its own.
(() => {
  const css = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

  const figure = (plot, title, run) => {
    const named = new Set();
    const data = plot.data.map((trace) => {
      const label = trace.fill ? "95 % interval" : trace.name;
      const first = Boolean(label) && !named.has(label);
      named.add(label);
      return { ...trace, name: label, showlegend: first };
    });
    const { margin, height, font } = plot.layout;
    const layout = {
      ...plot.layout,
      height: height + 106,
      margin: { ...margin, t: margin.t + 66, b: margin.b + 40, r: 24 },
      paper_bgcolor: css("--surface"),
      showlegend: true,
      legend: { orientation: "h", x: 0, xanchor: "left", yref: "container", y: 0.01, yanchor: "bottom", font: { size: 13 } },
      title: {
        text: `<b>${plain(title)}</b><br><span style="font-size:13px;color:${css("--soft-ink")}">${plain(run)}</span>`,
        x: 0, xref: "paper", y: 1, yref: "container", yanchor: "top", pad: { t: 28 }, font: { ...font, size: 18 },
      },
    };
    return { data, layout };
  };

  // The buttons under a chart.
  const pictures = (element) => {
    element.addEventListener("click", (event) => {
      const format = event.target.closest("button[data-picture]")?.dataset.picture;
      const card = element.closest(".card"), plot = card.querySelector(".plot");
      if (!format || !window.Plotly || !plot.data) return;
      const title = card.querySelector("h3").firstChild.textContent.trim();
      const run = document.querySelector("[data-run]"), name = run.querySelector(".run-head b").textContent;
      const made = figure(plot, title, `${name} · ${run.dataset.run}`);
      window.Plotly.downloadImage(made, {
        format, scale: format === "png" ? 2 : 1, width: plot.clientWidth < 620 ? 620 : 1100, height: made.layout.height,
        filename: `${run.dataset.run}-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`,
      });
    });
  };

  Object.assign(window.spt, { pictures });
})();
