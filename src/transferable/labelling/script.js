"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const make = (kind, text) => Object.assign(document.createElement(kind), { textContent: text });
  const data = JSON.parse(at("content").textContent);
  const SKIPPED = null; // "cannot tell"; a row without an answer is undefined
  const LONG = 300;
  const n = data.lines.length;
  const key = `transferable-labels-${data.key}`;
  const undoable = [];
  const labels = {};
  let here = 0;
  let kept = true;

  const save = () => {
    try {
      localStorage.setItem(key, JSON.stringify({ labels, here }));
      history.replaceState({ key, labels, here }, ""); // a busy browser may store late
    } catch {
      kept = false;
    }
  };
  try {
    const before = history.state?.key === key ? history.state : null;
    const found = JSON.parse(localStorage.getItem(key)) ?? before;
    Object.assign(labels, found?.labels);
    here = found?.here ?? 0;
  } catch {
    kept = false;
  }

  const named = (label) =>
    label === SKIPPED ? "cannot tell" : label === data.unknown ? "none of these" : label;
  const show = (focus) => {
    at("row").textContent = `Row ${data.cells[here][0]}, ${here + 1} of ${n}`;
    at("picture").hidden = !data.pictures.length;
    if (data.pictures.length) {
      const image = at("picture").firstElementChild;
      image.src = `data:image/png;base64,${data.pictures[here]}`;
      image.alt = `Picture of row ${data.cells[here][0]}; press to enlarge`;
      at("picture").setAttribute("aria-expanded", "false");
    }
    at("cells").replaceChildren(
      ...data.columns.slice(1).map((name, k) => {
        const line = document.createElement("div");
        const text = data.cells[here][k + 1];
        const value = make("dd", text.length > LONG ? "" : text || "–");
        if (text.length > LONG) {
          const folded = document.createElement("details");
          folded.append(make("summary", `${text.slice(0, LONG)}…`), make("span", text));
          value.append(folded);
        }
        line.append(make("dt", name), value);
        return line;
      }),
    );
    update();
    if (focus) at("row").focus();
  };
  const update = () => {
    const own = labels[here];
    for (const button of at("classes").children)
      button.setAttribute("aria-pressed", String(button.dataset.name === own));
    at("none").setAttribute("aria-pressed", String(own === data.unknown));
    at("skip").setAttribute("aria-pressed", String(own === SKIPPED));
    at("back").disabled = here === 0;
    at("next").disabled = here === n - 1;
    at("undo").disabled = !undoable.length;
    const answers = Object.values(labels);
    const skipped = answers.filter((label) => label === SKIPPED).length;
    const given = answers.length - skipped;
    at("done").value = answers.length;
    at("count").textContent =
      `${answers.length} of ${n} rows done` +
      (kept ? "" : "; this browser does not keep them: download before you close the page");
    at("kept").textContent =
      `labels: ${given}; marked “cannot tell”: ${skipped}; not done: ${n - answers.length}`;
    at("download").disabled = !given;
    [...at("rows").children].forEach((line, i) => {
      const button = line.firstElementChild;
      button.textContent =
        `Row ${data.cells[i][0]}` + (i in labels ? `: ${named(labels[i])}` : "");
      if (i === here) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
  };
  const go = (row) => {
    here = Math.min(Math.max(row, 0), n - 1);
    save(); // not on loading: where reading failed, what is kept must not be overwritten
    show(true);
  };
  const answer = (label) => {
    undoable.push([here, labels[here]]);
    labels[here] = label;
    at("search").value = "";
    filter();
    const open = [...Array(n).keys()].map((k) => (here + 1 + k) % n).find((k) => !(k in labels));
    go(open ?? here);
  };
  const undo = () => {
    if (!undoable.length) return;
    const [row, before] = undoable.pop();
    if (before === undefined) delete labels[row];
    else labels[row] = before;
    go(row);
  };
  const filter = () => {
    const wanted = at("search").value.trim().toLowerCase();
    for (const button of at("classes").children)
      button.hidden = !button.dataset.name.toLowerCase().includes(wanted);
  };

  const keys = { 0: () => answer(data.unknown), x: () => answer(SKIPPED), u: undo };
  keys.ArrowLeft = () => go(here - 1);
  keys.ArrowRight = () => go(here + 1);
  const single = data.classes.every(({ name }) => name.length === 1); // digits, letters
  data.classes.forEach(({ name, shown }, k) => {
    const button = make("button", shown);
    Object.assign(button, { type: "button" }).dataset.name = name;
    if (single || k < 9) {
      const pressed = single ? name : String(k + 1);
      keys[pressed] = () => answer(name);
      for (const other of document.querySelectorAll("#none kbd, #skip kbd, #undo kbd"))
        other.hidden ||= other.textContent === pressed;
      const hint = make("kbd", pressed);
      hint.setAttribute("aria-hidden", "true");
      button.append(hint);
    }
    button.addEventListener("click", () => answer(name));
    at("classes").append(button);
  });
  data.lines.forEach((_, i) => {
    const line = document.createElement("li");
    const button = Object.assign(make("button", ""), { type: "button" });
    button.addEventListener("click", () => go(i));
    line.append(button);
    at("rows").append(line);
  });
  at("find").hidden = data.classes.length < 10;
  at("search").addEventListener("input", filter);
  at("search").addEventListener("keydown", (event) => {
    const first = [...at("classes").children].find((button) => !button.hidden);
    if (event.key === "Enter" && at("search").value.trim() && first) first.click();
  });
  at("none").addEventListener("click", () => answer(data.unknown));
  at("skip").addEventListener("click", () => answer(SKIPPED));
  at("back").addEventListener("click", () => go(here - 1));
  at("next").addEventListener("click", () => go(here + 1));
  at("undo").addEventListener("click", undo);
  at("picture").addEventListener("click", () => {
    const open = at("picture").getAttribute("aria-expanded") === "true";
    at("picture").setAttribute("aria-expanded", String(!open));
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (Object.hasOwn(keys, event.key)) keys[event.key]();
  });
  at("download").addEventListener("click", () => {
    const quoted = (text) =>
      [data.sep, '"', "\n", "\r"].some((mark) => text.includes(mark))
        ? `"${text.replaceAll('"', '""')}"`
        : text;
    const lines = data.lines.flatMap((line, i) =>
      labels[i] === undefined || labels[i] === SKIPPED ? [] : [line + quoted(labels[i])]);
    // The mark of UTF-8 lets spreadsheets read letters beyond ASCII.
    const content = new Blob([`\ufeff${[data.head, ...lines].join("\n")}\n`], { type: "text/csv" });
    const link = Object.assign(document.createElement("a"), { download: data.file });
    link.href = URL.createObjectURL(content);
    link.click();
    URL.revokeObjectURL(link.href);
  });
  if (!Number.isInteger(here) || here < 0 || here >= n) here = 0;
  show(false);
})();
