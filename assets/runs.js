// The table of all runs. The server sends the order of the rows, and of the rows those that this page does not have.
(() => {
  const rows = new Map(); // by the id of the run; outlives the element, which goes when another tab is opened
  let last = { time: 0, order: [] };

  const built = (html) => {
    const body = document.createElement("tbody");
    body.innerHTML = html;
    return body.firstElementChild;
  };

  const inWords = (row) => {
    for (const time of row.querySelectorAll("time")) {
      const date = new Date(time.dateTime), now = new Date();
      const near = date.toDateString() === now.toDateString();
      const form = near ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" };
      if (date.getFullYear() !== now.getFullYear()) form.year = "numeric";
      time.textContent = (near ? "today " : "") + date.toLocaleString("en-GB", form);
      time.title = date.toLocaleString("en-GB");
    }
  };

  const runs = (element, props, watch, trigger) => {
    const body = element.querySelector("tbody");
    const find = (selector) => element.querySelector(selector);
    const chosen = () => [...rows.values()].filter((row) => row.querySelector("input:checked"));
    const choose = () => trigger("ask", { what: "choose", runs: chosen().map((row) => row.querySelector("input").value) });

    const show = () => {
      const news = props.value;
      if (!news || !news.order) return;
      const focus = document.activeElement?.dataset?.key;
      for (const [id, html] of Object.entries(news.rows)) {
        const row = built(html), old = rows.get(id);
        if (old?.querySelector("input")?.checked) row.querySelector("input").checked = true;
        inWords(row);
        if (old?.isConnected) old.replaceWith(row);
        rows.set(id, row);
      }
      if (news.time >= last.time) last = news; // one that was overtaken brings its rows, and no more
      const order = last.order.map((id) => rows.get(id)).filter(Boolean);
      for (const row of [...body.children]) if (!order.includes(row)) row.remove();
      order.forEach((row, i) => body.children[i] !== row && body.insertBefore(row, body.children[i] || null));
      for (const head of element.querySelectorAll("th[data-by]"))
        head.setAttribute("aria-sort", head.dataset.by !== last.by ? "none" : last.down ? "descending" : "ascending");
      find("table").hidden = !order.length;
      if (find(".count").textContent !== last.count) find(".count").textContent = last.count;
      find(".more").textContent = last.more;
      find(".more").hidden = !last.more;
      if (find(".choice").dataset.html !== last.choice) {
        find(".choice").innerHTML = find(".choice").dataset.html = last.choice;
      }
      if (focus && document.activeElement === document.body) find(`[data-key="${focus}"]`)?.focus();
    };

    element.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      for (const event of ["ask", "alter"]) {
        if (button.dataset[event]) trigger(event, { what: button.dataset[event], run: button.dataset.run || "" });
      }
      if ("clear" in button.dataset) {
        for (const row of chosen()) row.querySelector("input").checked = false;
        choose();
      }
    });
    element.addEventListener("change", (event) => event.target.closest("tbody input") && choose());
    watch("value", show);
    last = { time: 0, order: [] };
    const looking = setInterval(() => {
      if (!element.isConnected) clearInterval(looking);
      else if (element.offsetParent && !document.hidden) trigger("ask", { what: "look" });
    }, 2000);
    trigger("ask", { what: "all" }); // what was sent before there was an element is lost
  };

  window.spt.runs = runs;
})();
