// Watching answers change: a slider over the probed steps, a play button, and the answers as they were at that step.
// All of it happens in the browser; the texts are set as text, never as markup.
(() => {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const WHOLE = 14_000, SLOW = 1400, FAST = 150; // ms: of a playback, and of a step at most and at least

  const make = (tag, name = "", text = "") => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text) node.textContent = text;
    return node;
  };

  // As `mark` of text.py makes it.
  const mark = (yes, label) => {
    const node = make("span", yes ? "mark yes" : "mark no");
    const sign = make("i", "", yes ? "✓" : "✕");
    sign.setAttribute("aria-hidden", "true");
    node.append(sign, yes ? label : `not ${label}`);
    return node;
  };

  // An answer with its marks.
  const said = (moment, right) => {
    const marks = make("span", "marks");
    marks.append(mark(moment.right, right), mark(moment.form, "in format"));
    const empty = !moment.text.trim();
    return [make("p", empty ? "answer-text empty" : "answer-text", empty ? "(empty answer)" : moment.text), marks];
  };

  const hit = (moment) => moment.right && moment.form;

  // Every step with its own moment; what did not change is not sent twice.
  const filled = (moments) => {
    let last = { text: "", right: false, form: false };
    return moments.map((moment) => ({ ...(last = moment || last), same: !moment }));
  };

  // One square a step and mark: filled = yes, hollow = no.
  const track = (question, moments, steps, go) => {
    const node = make("div", "track");
    node.style.setProperty("--steps", steps.length);
    for (const [key, label] of [["right", question.right], ["form", "in format"]]) {
      node.append(make("span", "", label));
      moments.forEach((moment, index) => {
        const cell = make("i", moment[key] ? "yes" : "");
        cell.title = `step ${steps[index]}: ${moment[key] ? "" : "not "}${label}`;
        cell.dataset.index = index;
        node.append(cell);
      });
    }
    node.setAttribute("role", "img");
    const good = steps.filter((_, index) => hit(moments[index]));
    const spoken = good.length ? `at step ${good.join(", ")}` : "at no step";
    node.setAttribute("aria-label", `${question.right} and in format ${spoken}`);
    node.addEventListener("click", (event) => {
      if (event.target.dataset.index) go(Number(event.target.dataset.index));
    });
    return node;
  };

  const head = (question) => {
    const node = make("header");
    if (question.topic) node.append(make("span", "topic", question.topic));
    const asked = make("div", "question");
    asked.append(make("p", "answer-text", question.question));
    node.append(asked);
    if (question.options.length) {
      const list = make("ul", "choices");
      list.append(...question.options.map((option) => make("li", "", option)));
      node.append(list);
    }
    const wanted = make("div", "wanted");
    wanted.append(make("span", "", "Reference"), make("p", "answer-text", question.target));
    node.append(wanted);
    return node;
  };

  // The list of all steps, made when it is opened.
  const everyStep = (question, moments, steps) => {
    const fold = make("details", "fold");
    fold.append(make("summary", "", "Every step"));
    fold.addEventListener("toggle", () => {
      if (!fold.open || fold.children.length > 1) return;
      const list = make("ol", "timeline");
      moments.forEach((moment, index) => {
        const line = make("li", `moment${moment.same ? " same" : ""}${hit(moment) ? " hit" : ""}`);
        const step = make("span", "step");
        step.append(make("small", "", "step "), String(steps[index]));
        const text = make("div", "said");
        const [answer, marks] = said(moment, question.right);
        text.append(answer);
        line.append(step, text, marks);
        list.append(line);
      });
      fold.append(list);
    });
    return fold;
  };

  const card = (question, steps, go) => {
    const moments = filled(question.moments);
    const node = make("article", "watched");
    const now = make("div", "now");
    const squares = track(question, moments, steps, go);
    node.append(head(question), squares, now, everyStep(question, moments, steps));
    let shown = null;
    const show = (index) => {
      const moment = moments[index];
      for (const cell of squares.querySelectorAll("i"))
        cell.classList.toggle("here", Number(cell.dataset.index) === index);
      node.classList.toggle("hit", hit(moment));
      if (shown && moment.text === shown.text && moment.right === shown.right && moment.form === shown.form) return;
      now.replaceChildren(...said(moment, question.right));
      if (shown && !calm.matches) now.animate({ opacity: [0.25, 1] }, 350);
      shown = moment;
    };
    return { node, show, id: question.id };
  };

  const playback = (element, props, watch) => {
    const root = element.querySelector(".playback");
    const player = make("div", "player");
    const button = make("button", "quiet");
    button.type = "button";
    const slider = make("input");
    slider.type = "range";
    slider.min = 0;
    slider.setAttribute("aria-label", "Tuning step");
    const label = make("output");
    const cards = make("div", "watch-cards");
    player.append(button, slider, label);
    root.append(player, cards);

    let steps = [], shown = [], of = 0, run = null, index = 0, following = true, timer = null;

    const show = () => {
      slider.value = index;
      slider.setAttribute("aria-valuetext", `step ${steps[index]} of ${of}`);
      label.replaceChildren("step ", make("b", "", String(steps[index])), ` of ${of}`);
      shown.forEach((each) => each.show(index));
      window.spt.cursor(following ? null : steps[index]);
    };
    const pause = () => {
      clearTimeout(timer);
      timer = null;
      button.replaceChildren(make("i", "play-sign"), "Play");
    };
    const go = (to) => { index = to; following = false; show(); };
    const next = () => {
      timer = setTimeout(() => {
        if (!root.isConnected || index >= steps.length - 1) return pause();
        go(index + 1);
        next();
      }, Math.min(SLOW, Math.max(FAST, WHOLE / steps.length)));
    };
    button.addEventListener("click", () => {
      if (timer) return pause();
      button.replaceChildren(make("i", "pause-sign"), "Pause");
      go(index >= steps.length - 1 ? 0 : index);
      next();
    });
    slider.addEventListener("input", () => { pause(); go(Number(slider.value)); });

    const take = () => {
      const value = props.value;
      if (!value || !value.steps || !value.steps.length) return;
      const step = steps[index];
      if (value.run !== run) { pause(); following = true; }
      ({ steps, of, run } = value);
      const nearest = steps.findLastIndex((each) => each <= step);
      index = following ? steps.length - 1 : Math.max(0, nearest);
      slider.max = steps.length - 1;
      const open = new Set(shown.filter((each) => each.node.querySelector("details[open]")).map((each) => each.id));
      shown = value.questions.map((question) => card(question, steps, (to) => { pause(); go(to); }));
      cards.style.setProperty("--columns", Math.min(2, shown.length));
      cards.replaceChildren(...shown.map((each) => each.node));
      for (const each of shown) if (open.has(each.id)) each.node.querySelector("details").open = true;
      show();
    };
    pause();
    watch("value", take);
    take();
  };

  Object.assign(window.spt, { playback, said, filled, make });
})();
