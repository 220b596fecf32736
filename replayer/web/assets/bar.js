// The bar above every page, and what Locust's own page lacks: the token of each POST, our form.
"use strict";
(() => {
  const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";
  const now = meta("replayer");
  const base = now.replace(/now$/, "");
  const home = base.replace(/replayer\/$/, "");
  const token = meta("replayer-token");
  const bare = window.fetch.bind(window);
  const GONE = "the program has ended or cannot be reached";

  // Every request that changes something carries the token; no other page can read it.
  window.fetch = async (resource, options) => {
    const request = new Request(resource, options);
    const own = new URL(request.url).origin === location.origin;
    if (!own || request.method === "GET") return bare(request);
    request.headers.set("X-Replayer-Token", token);
    // Locust's page says why nothing was started only if the answer seems to be a good one.
    try {
      const answer = await bare(request);
      return answer.status === 403 ? new Response(answer.body, { headers: answer.headers }) : answer;
    } catch {
      return Response.json({ success: false, message: GONE });
    }
  };

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children.filter((child) => child !== null));
    return element;
  };
  const digits = (value) => Number(value.toPrecision(3)).toLocaleString("en");
  const theme = () =>
    localStorage.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const paint = () => {
    if (document.documentElement.dataset.theme !== theme()) {
      document.documentElement.dataset.theme = theme();
      dispatchEvent(new Event("replayer-theme"));
    }
  };

  const places = [
    ["New run", home || "/", () => location.pathname === (home || "/")],
    ["Live", `${base}live`],
    ["Runs", `${base}runs`, () => isUnder(`${base}runs`) || isUnder(`${base}compare`)],
    ["Capacity", `${base}capacities`],
    ["Traces", `${base}traces`, () => isUnder(`${base}traces`) || isUnder(`${base}timeline`)],
    ["Locust", `${home}locust`],
  ];
  const isUnder = (place) => location.pathname.startsWith(place);
  const isLocusts = () => isUnder(`${home}locust`);

  const bar = make("div", { id: "rp-bar", className: "rp" });
  const links = places.map(([label, href]) => make("a", { href, textContent: label }));
  const status = make("div", { id: "rp-now" });
  const alerts = make("div", { id: "rp-alerts" });
  status.setAttribute("role", "status");
  alerts.setAttribute("role", "alert");
  // It stays the same button while the rest is made anew each second, so that no press is lost.
  const halt = make("button", { className: "rp-stop", textContent: "Stop", hidden: true });
  halt.onclick = async () => {
    const { success, message } = await (await fetch(halt.value, { method: "POST", body: new URLSearchParams() })).json();
    if (!success) replace(alerts, [alert(message, "bad")]);
  };

  const mark = () =>
    places.forEach(([, place, isHere = () => isUnder(place)], at) => {
      if (isHere() === links[at].hasAttribute("aria-current")) return;
      if (!isHere()) return links[at].removeAttribute("aria-current");
      links[at].setAttribute("aria-current", "page");
      links[at].scrollIntoView({ block: "nearest", inline: "center" });
    });

  // Whether the page is about other runs than the last one, whose verdict would be taken for theirs.
  const isOther = (state, run) => {
    const [, place, rest] = location.pathname.slice(base.length - 1).split("/");
    return state === "stopped" && (["compare", "timeline"].includes(place) || (place === "runs" && rest && rest !== run.id));
  };

  const shown = {};
  const replace = (element, children) => {
    const text = children.map((child) => child.outerHTML ?? child).join("");
    if (shown[element.id] === text) return;
    shown[element.id] = text;
    element.replaceChildren(...children);
  };

  const span = (text, className = "") => make("span", { textContent: text, className });
  const chip = (text, kind) => {
    const found = span(text, "rp-chip");
    found.dataset.kind = kind;
    return found;
  };

  const describe = ({ state, run, search, ordered }) => {
    if (ordered) return [chip("PREPARING", "spawning"), span(`${ordered} is compiled`)];
    if (search) return [chip("MEASURING", "running"), make("a", { href: `${base}capacities`, textContent: search })];
    if (run === null || isOther(state, run)) return [];
    const what = `${run.scenario} on ${run.targets.join(", ")}`;
    if (state === "stopped") {
      const report = run.id ? make("a", { href: `${base}runs/${run.id}`, textContent: "Report" }) : null;
      return [chip(run.outcome.toUpperCase(), run.outcome), span(what), report].filter(Boolean);
    }
    const parts = [chip(state === "running" ? "RUNNING" : "PREPARING", state), span(what)];
    if (run.work) parts.push(...work(run.work));
    else if (run.phase) parts.push(...progress(run));
    return parts;
  };
  const work = ({ title, done, total, bytes }) => {
    const of = total ? ` of ${total.toLocaleString("en")}` : "";
    const size = bytes ? `, ${digits(bytes / 1e6)} MB` : "";
    const text = span(`${title}: ${done.toLocaleString("en")}${of} entries${size}`);
    return total ? [text, make("progress", { max: total, value: done })] : [text];
  };
  const many = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
  const progress = (run) => [
    span(run.phase),
    span(many(run.users, "user")),
    ...(run.rate === null ? [] : [span(`${digits(run.rate)} transactions/s`)]),
    span(many(run.errors, "error"), run.errors ? "rp-bad" : ""),
    ...(run.left_s === null ? [] : [span(`${Math.ceil(run.left_s)} s left`)]),
  ];

  const alert = (text, kind, hint = "") => {
    const found = make("div", { className: "rp-alert", textContent: text });
    found.dataset.kind = kind;
    if (hint) found.append(make("small", { textContent: hint }));
    return found;
  };
  // A run that has ended is told of in its report, and where it was watched.
  const isWatched = (state) => state !== "stopped" || isUnder(`${base}live`) || isLocusts();
  const complain = ({ state, run, outlook, ordered, refused }) => {
    if (ordered) return [];
    if (refused) return [alert(`The run was not started: ${refused.message}`, "bad", refused.hint)];
    if (run === null) return outlook.map(({ message, hint }) => alert(message, "warn", hint));
    if (isOther(state, run)) return [];
    const found = run.failure ? [alert(`The run failed: ${run.failure}`, "bad")] : [];
    if (!isWatched(state)) return found;
    if (!run.failure && run.why && run.outcome !== "pass") found.push(alert(run.why, "bad"));
    for (const { call, age_s: age } of run.hanging.slice(0, 5))
      found.push(alert(`A call hangs: ${call}, for ${Math.floor(age)} s`, "bad"));
    if (run.hanging.length > 5) found.push(alert(`${run.hanging.length} calls hang`, "bad"));
    for (const { message, hint } of run.warnings) found.push(alert(message, "warn", hint));
    return found;
  };

  const leave = make("button", { className: "rp-leave", textContent: "Log out", hidden: true });
  leave.onclick = async () => {
    await fetch(`${base}logout`, { method: "POST", redirect: "manual" });
    location.assign(`${base}login`);
  };

  let server = null;
  const look = async () => {
    try {
      const answer = await bare(now, { headers: { Accept: "application/json" } });
      if (answer.status === 401) location.assign(`${base}login`);
      const known = await answer.json();
      server ??= known.server;
      if (known.server !== server) location.reload(); // its token is of a program that has ended
      leave.hidden = !known.login;
      halt.hidden = !known.search && !["spawning", "running"].includes(known.state);
      halt.value = known.search ? `${base}capacities/stop` : `${home}stop`;
      replace(status, describe(known));
      replace(alerts, complain(known));
    } catch {
      replace(status, [chip("NO ANSWER", "failed"), span(GONE)]);
    }
    setTimeout(look, 1000);
  };

  // Locust's form: its numbers follow the scenario, which says what it does.
  const setNumber = (input, value) => {
    if (!input) return;
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, value);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  };
  let scenarios = null;
  const learn = async () => {
    scenarios = [];
    scenarios = await (await bare(`${base}scenarios`)).json();
  };
  const dressForm = () => {
    const select = document.querySelector('form select[name="scenario"]');
    if (!select) return;
    if (scenarios === null) learn().catch(() => (scenarios = null));
    const form = select.closest("form");
    form.dataset.scenario ||= select.value;
    const chosen = (scenarios ?? []).find(({ name }) => name === select.value);
    if (!chosen) return;
    if (form.dataset.scenario !== select.value) {
      form.dataset.scenario = select.value;
      setNumber(form.querySelector('input[name="userCount"]'), String(chosen.users));
      setNumber(form.querySelector('input[name="spawnRate"]'), String(chosen.spawn_rate));
    }
    let about = form.querySelector(".rp-about");
    if (!about) {
      about = make("p", { className: "rp-about" });
      select.closest(".MuiFormControl-root").after(about);
    }
    if (about.textContent !== chosen.about) about.textContent = chosen.about;
  };
  const dressLocust = () => {
    // A plan is made for a number of users: it cannot be changed while it runs.
    for (const button of document.querySelectorAll("header button"))
      if (button.textContent === "Edit") button.style.display = "none";
    // What Locust calls the host are the targets of the form; the bar has those of the run.
    for (const label of document.querySelectorAll("header p"))
      if (label.textContent === "Host")
        for (const part of [label.parentElement, label.parentElement.nextElementSibling]) part.style.display = "none";
    for (const select of document.querySelectorAll('select[name="targets"][multiple]'))
      select.size = Math.min(select.options.length, 8);
  };

  // Locust's form leaves out of a number what is no digit, and would start 3 users for -3: such a text stays as it is, to
  // be refused.
  const isWrong = (text) => /[^0-9.]/.test(text);
  const kept = new WeakSet();
  const keep = (input) => {
    if (kept.has(input)) return;
    kept.add(input);
    const { get, set } = Object.getOwnPropertyDescriptor(input, "value");
    const unlessWrong = function (text) {
      if (!isWrong(this.value)) set.call(this, text);
    };
    Object.defineProperty(input, "value", { configurable: true, get, set: unlessWrong });
  };
  const hear = (event) => {
    const { name, value } = event.target;
    if (!["userCount", "spawnRate"].includes(name) || !isWrong(value)) return;
    event.stopPropagation();
    keep(event.target);
  };
  addEventListener("input", hear, true);

  const begin = () => {
    const dark = make("button", { className: "rp-theme", textContent: "Light / dark" });
    dark.onclick = () => {
      localStorage.theme = theme() === "dark" ? "light" : "dark";
      paint();
    };
    const nav = make("nav", {}, make("b", { textContent: "replayer" }), ...links);
    if (!isLocusts()) nav.append(dark);
    nav.append(leave);
    bar.append(nav, make("div", { id: "rp-row" }, status, halt), alerts);
    document.body.prepend(bar);
    const tidy = () => (paint(), mark(), isLocusts() && (dressForm(), dressLocust()));
    tidy();
    setInterval(tidy, 250);
    look();
  };
  window.replayer = { base, make, digits, theme };
  paint();
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", begin);
  else begin();
})();
