// The tour for a stand: finished runs, one after the other, in a layer over the page, until a visitor touches it. The
// server is asked once a run; growing curves and changing answers are the browser's own work.
(() => {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const IDLE = 90_000; // ms without a visitor, until the tour goes on
  const FADE = 600, OPENING = 2500, GROW = 20_000, HOLD = 4000, SCORES = 12_000, TICK = 100;
  const RETRY = 10_000; // while the server does not answer; what is on the screen stays
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));

  // A curve or a band up to `step`, which may lie between two of its points.
  const cut = (x, y, step) => {
    const before = x.findLastIndex((each) => each <= step);
    const xs = x.slice(0, before + 1), ys = y.slice(0, before + 1);
    if (before >= 0 && before < x.length - 1 && x[before] < step) {
      const share = (step - x[before]) / (x[before + 1] - x[before]);
      xs.push(step);
      ys.push(y[before] + share * (y[before + 1] - y[before]));
    }
    return [xs, ys];
  };
  const upTo = (trace, step) => {
    if (trace.meta === "curve") {
      const [x, y] = cut(trace.x, trace.y, step);
      return { ...trace, x, y, customdata: undefined };
    }
    if (trace.meta === "band") {
      const half = trace.x.length / 2;
      const [x, high] = cut(trace.x.slice(0, half), trace.y.slice(0, half), step);
      const [, low] = cut(trace.x.slice(0, half), trace.y.slice(half).reverse(), step);
      return { ...trace, x: [...x, ...x.slice().reverse()], y: [...high, ...low.reverse()] };
    }
    return trace;
  };

  // A figure of the page, enlarged: its type, lines, markers and margins.
  const GROWS = new Set(["size", "standoff", "yshift", "l", "r", "t", "b"]);
  const enlarge = (node, by, within = "") => {
    if (Array.isArray(node)) return node.map((each) => enlarge(each, by, within));
    if (!node || typeof node !== "object") return node;
    return Object.fromEntries(Object.entries(node).map(([key, value]) => {
      const grows = GROWS.has(key) || (key === "width" && within === "line");
      return [key, grows && typeof value === "number" ? value * by : enlarge(value, by, key)];
    }));
  };

  const kiosk = (element, server, trigger) => {
    const address = new URL(location).searchParams;
    const stand = document.querySelector("meta[name=spt-kiosk]");
    if (!address.has("kiosk") && !stand) return;

    const root = element.querySelector(".kiosk");
    const { make, said, filled, draw } = window.spt;
    const top = make("div", "tour-top"), play = make("div", "tour-play"), scores = make("div", "tour-scores");
    const keys = make("div", "tour-keys"), plot = make("div", "plot"), answer = make("div", "tour-answer");
    const stage = make("div", "tour-stage"), foot = make("p", "tour-foot", "Touch the screen or press a key to look around");
    const room = make("div", "tour-room"); // what the other parts leave to the chart
    room.append(plot);
    play.append(keys, room, answer);
    stage.append(top, play, scores);
    root.append(stage, foot);

    let touring = false, turn = 0, run = "", idle = null, shifts = 0;

    // Curves and answer, grown to `share` of the steps.
    const grower = (scene) => {
      const { steps, questions: [question] } = scene.answer;
      const moments = filled(question.moments);
      const step = make("p", "tour-step"), asked = make("div", "tour-asked"), now = make("div", "now");
      asked.append(make("p", "tour-question", question.question), make("p", "tour-wanted", `Reference: ${question.target}`));
      answer.replaceChildren(step, asked, now);
      keys.innerHTML = scene.legend; // written by the server, as all its pieces of HTML, with every text escaped
      keys.append(make("span", "", scene.note));
      let figure = null, size = "", shown = null;
      return (share) => {
        const at = share * scene.of, index = Math.max(0, steps.findLastIndex((each) => each <= at));
        const by = Math.min(2.2, Math.max(1.25, innerHeight / 600));
        if (size !== `${room.clientWidth} ${innerHeight}`) {
          size = `${room.clientWidth} ${innerHeight}`;
          figure = enlarge(scene.figure, by);
          figure.layout.height = Math.max(260, room.clientHeight);
        }
        const drawn = calm.matches ? steps[index] : at;
        draw(plot, { ...figure, data: figure.data.map((trace) => upTo(trace, drawn)) }, share < 1 ? drawn : null);
        step.replaceChildren("step ", make("b", "", String(Math.round(drawn))), ` of ${scene.of}`);
        const moment = moments[index];
        if (shown && moment.text === shown.text && moment.right === shown.right && moment.form === shown.form) return;
        now.replaceChildren(...said(moment, question.right));
        answer.classList.toggle("hit", moment.right && moment.form);
        if (shown && !calm.matches) now.animate({ opacity: [0.15, 1] }, FADE);
        shown = moment;
      };
    };

    const show = (part, visible) => part.classList.toggle("shown", visible);

    const perform = async (scene, goes) => {
      for (const part of [top, play, scores]) show(part, false);
      await wait(FADE);
      if (!goes()) return;
      // The pixels of a screen on a stand are not to age in the same place.
      shifts += 1;
      stage.style.translate = `${(shifts % 3) * 6 - 6}px ${(shifts % 5) * 3 - 6}px`;
      top.innerHTML = scene.html;
      scores.innerHTML = scene.scores || "";
      show(top, true);
      if (scene.figure) {
        const grow = grower(scene);
        show(play, true);
        grow(0);
        await wait(OPENING);
        const start = performance.now();
        for (let share = 0; share < 1 && goes(); await wait(TICK)) {
          share = Math.min(1, (performance.now() - start) / GROW);
          if (!document.hidden) grow(share);
        }
        if (goes()) await wait(HOLD);
        if (!goes()) return;
        show(play, false);
        await wait(FADE);
      }
      show(scores, true);
      await wait(SCORES);
    };

    // The page under the layer is out of reach of keyboard and screen reader. (It may not be there yet at first.)
    const beneath = (inert) => document.querySelector("#tabs")?.toggleAttribute("inert", inert);

    const tour = async () => {
      const mine = ++turn, goes = () => touring && turn === mine;
      while (goes()) {
        try {
          const scene = await server.following(run);
          if (!goes()) return;
          run = scene.run || "";
          beneath(true);
          await perform(scene, goes);
        } catch (error) {
          console.warn(error);
          await wait(RETRY);
        }
      }
    };

    const begin = () => {
      touring = true;
      root.hidden = false;
      root.classList.remove("leaving");
      tour();
    };
    const leave = () => {
      touring = false;
      beneath(false);
      if (run) trigger("pick", { run });
      window.scrollTo(0, 0);
      // It stays a moment while it fades, so that the touch that ended it does nothing else.
      root.classList.add("leaving");
      setTimeout(() => { if (!touring) root.hidden = true; }, FADE);
    };
    const alive = (event) => {
      clearTimeout(idle);
      if (touring) {
        if (!["pointerdown", "keydown", "wheel"].includes(event.type)) return;
        if (event.type === "keydown") { event.preventDefault(); event.stopPropagation(); }
        leave();
      }
      idle = setTimeout(begin, IDLE);
    };
    for (const type of ["pointerdown", "pointermove", "keydown", "wheel", "input"])
      window.addEventListener(type, alive, { capture: true, passive: type !== "keydown" });
    if (address.has("kiosk") || !address.has("run")) begin();
    else idle = setTimeout(begin, IDLE);
  };

  Object.assign(window.spt, { kiosk });
})();
