"use strict";
// Text goes into the page as text only (textContent): what a model wrote is never parsed as markup.
const root = document.documentElement;
root.classList.add("js");
const data = JSON.parse(document.getElementById("data").textContent);
const card = document.getElementById("card");

function element(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function probability(value) {
  return value === null ? "" : value.toFixed(3);
}

// Time that runs while its button says so, at a multiple of its own pace, from the first token to ``length`` seconds
// behind it. It keeps its own time: what a slider makes of a number is rounded. ``show`` draws it.
class Clock {
  constructor(button, length, show) {
    const pace = Number(button.dataset.pace || 1);
    Object.assign(this, { button, length, show, pace, name: button.textContent, timer: 0, time: length, over: true });
  }

  at(seconds) {
    this.over = seconds >= this.length;
    this.time = this.over ? this.length : seconds;
    this.show(this.time);
  }

  toggle() {
    if (this.timer) return this.pause();
    const from = this.over ? 0 : this.time;
    let began = 0;
    const frame = (now) => {
      began ||= now;
      this.at(from + (now - began) / 1000 * this.pace);
      if (this.over) this.pause();
      else this.timer = requestAnimationFrame(frame);
    };
    this.at(from);
    this.button.textContent = "❚❚ pause";
    this.timer = requestAnimationFrame(frame);
  }

  pause() {
    cancelAnimationFrame(this.timer);
    this.timer = 0;
    this.button.textContent = this.name;
  }
}

class Answer {
  constructor(article, rounds) {
    this.rounds = rounds;
    this.number = article.dataset.answer;
    this.label = article.querySelector(".label")?.textContent;
    this.slider = article.querySelector("input");
    this.output = article.querySelector("output");
    this.lane = article.querySelector(".round");
    this.text = article.querySelector(".text");
    this.tokens = [...article.querySelectorAll(".t")];
    this.byRound = rounds.map(() => []);
    for (const token of this.tokens) this.byRound[token.dataset.s].push(token);
    this.shown = rounds.length - 1;
    this.seconds = this.since(this.shown);
    let written = 0;
    this.written = rounds.map((round) => written += round.tokens.length);
    const play = article.querySelector("[data-go=play]");
    this.clock = new Clock(play, this.seconds, (now) => this.showAt(now));
    article.addEventListener("keydown", (event) => this.key(event));
    this.slider.addEventListener("input", () => { this.pause(); this.show(Number(this.slider.value)); });
    for (const button of article.querySelectorAll("[data-go]"))
      button.addEventListener("click", () => this.go(button.dataset.go));
    const text = this.text;
    text.addEventListener("click", (event) => {
      const token = event.target.closest(".t");
      if (token) { this.pause(); this.show(Number(token.dataset.s)); }
    });
    for (const name of ["pointerover", "focusin"]) text.addEventListener(name, (event) => this.describe(event));
    for (const name of ["pointerout", "focusout"]) text.addEventListener(name, () => { card.hidden = true; });
    this.show(this.shown);
  }

  // From the first token to the end of a round.
  since(round) {
    return this.rounds[round].time - this.rounds[0].time;
  }

  // The last round that had ended so many seconds after the first token.
  roundAt(seconds) {
    let low = 0, high = this.rounds.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.since(middle) <= seconds) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  showAt(seconds) {
    const round = this.roundAt(seconds);
    if (round !== this.shown) this.draw(round);
  }

  show(round) {
    this.draw(round);
    this.clock.time = this.since(this.shown);
    this.clock.over = this.shown === this.rounds.length - 1;
  }

  // Only the tokens between the old and the new round change.
  draw(round) {
    const target = Math.min(Math.max(round, 0), this.rounds.length - 1);
    for (const token of this.byRound[this.shown]) token.classList.remove("current", "landed");
    for (let i = target + 1; i <= this.shown; i++) for (const token of this.byRound[i]) token.classList.add("later");
    for (let i = this.shown + 1; i <= target; i++) for (const token of this.byRound[i]) token.classList.remove("later");
    for (const token of this.byRound[target]) token.classList.add("current");
    if (target > this.shown) for (const token of this.byRound[target]) token.classList.add("landed");
    this.shown = target;
    this.slider.value = target;
    const facts = this.rounds[target];
    this.output.textContent = `${facts.summary} · ${facts.cost} · ${facts.time.toFixed(3)} s after the question`;
    this.slider.setAttribute("aria-valuetext", facts.summary);
    this.lane.replaceChildren(...facts.cells.map(([text, fate, drafted]) => {
      const cell = element("span", "cell", "");
      cell.append(element("span", fate, text), element("small", "", probability(drafted)));
      return cell;
    }));
  }

  // Where a lane has rows of its own to scroll, the newest is in view.
  follow() {
    const newest = this.byRound[this.shown].at(-1);
    if (newest) this.text.scrollTop = newest.offsetTop + newest.offsetHeight - this.text.clientHeight;
  }

  go(where) {
    if (where === "play") { this.touched(); return this.clock.toggle(); }
    this.pause();
    const step = where.endsWith("back") ? -1 : 1;
    let round = this.shown + step;
    if (where.startsWith("reject"))
      while (round >= 0 && round < this.rounds.length && !this.rounds[round].corrected) round += step;
    if (round >= 0 && round < this.rounds.length) this.show(round);
  }

  // By hand: the clock goes on from there.
  pause() {
    this.clock.pause();
    this.touched();
  }

  // The reader moves this answer by itself.
  touched() {}

  key(event) {
    const keys = { ",": "back", ".": "next", "{": "reject-back", "}": "reject-next" };
    if (keys[event.key]) return this.go(keys[event.key]);
    const token = event.target.closest(".t");
    if (!token) return;
    if (event.key === "Escape") { card.hidden = true; return; }
    if (event.key === "Enter") return this.show(Number(token.dataset.s));
    const place = this.tokens.indexOf(token), last = this.tokens.length - 1;
    const goal = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last }[event.key];
    if (goal === undefined) return;
    event.preventDefault();
    const next = this.tokens[Math.min(Math.max(goal, 0), last)];
    token.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  describe(event) {
    const token = event.target.closest(".t");
    if (!token) return;
    const round = this.rounds[token.dataset.s];
    const [text, verdict, target, drafter, chance, why] = round.tokens[token.dataset.k];
    const lines = [element("p", `token ${verdict}`, text), element("p", "", `${verdict}. ${why}`)];
    lines.push(element("p", "", `target's probability ${probability(target)}`));
    if (drafter !== null) lines.push(element("p", "", `drafter's probability ${probability(drafter)}`));
    if (chance !== null) lines.push(element("p", "", `random number ${chance.toFixed(4)}`));
    lines.push(element("p", "", round.summary), element("p", "", round.cost));
    card.replaceChildren(...lines);
    card.hidden = false;
    const box = token.getClientRects()[0], size = card.getBoundingClientRect();
    const below = box.bottom + 6 + size.height <= innerHeight;
    card.style.left = `${Math.max(8, Math.min(box.left, root.clientWidth - size.width - 8))}px`;
    card.style.top = `${below ? box.bottom + 6 : Math.max(8, box.top - size.height - 6)}px`;
  }
}

// Lanes on one clock, which starts at the first token of each.
class Race {
  constructor(section, lanes) {
    this.lanes = lanes;
    this.section = section;
    this.slider = section.querySelector(".scrub input");
    this.tracks = lanes.map((lane) => section.querySelector(`[data-track="${lane.number}"]`));
    const button = section.querySelector("[data-go=race]");
    this.clock = new Clock(button, Math.max(...lanes.map((lane) => lane.seconds)), (now) => this.show(now));
    button.addEventListener("click", () => { this.pauseLanes(); this.clock.toggle(); });
    this.slider.addEventListener("input", () => {
      this.clock.pause();
      this.pauseLanes();
      this.clock.at(this.clock.length * (this.slider.value / this.slider.max)); // at its end times one, exactly
    });
    for (const lane of lanes) lane.touched = () => this.clock.pause();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.clock.at(this.clock.length);
    else this.clock.toggle();
  }

  pauseLanes() {
    for (const lane of this.lanes) lane.clock.pause();
  }

  // While it runs bars are tokens written; at the end they are the time that each lane took.
  show(seconds) {
    const { over, length } = this.clock;
    this.section.classList.toggle("over", over);
    this.lanes.forEach((lane, place) => {
      lane.showAt(seconds);
      lane.follow();
      const [bar, told] = this.tracks[place].querySelectorAll("progress, output");
      const took = Math.min(seconds, lane.seconds), tokens = lane.written[lane.shown];
      bar.max = over ? length || 1 : Math.max(...this.lanes.map((each) => each.written.at(-1)));
      bar.value = over ? lane.seconds : tokens;
      bar.setAttribute("aria-label", over ? "Seconds it took" : "Tokens written");
      const wrote = `${seconds >= lane.seconds ? "✓ " : ""}${tokens} token${tokens === 1 ? "" : "s"}`;
      told.textContent = over ? `took ${took.toFixed(2)} s` : wrote;
    });
    this.slider.value = Math.round(seconds / (length || 1) * this.slider.max);
    this.slider.setAttribute("aria-valuetext", `${seconds.toFixed(2)} seconds`);
  }
}

const answers = new Map();
for (const article of document.querySelectorAll("article")) {
  const rounds = data[article.dataset.answer];
  if (rounds.length) answers.set(article, new Answer(article, rounds));
}
// An answer by itself plays from its beginning; where nothing may move, it stands at its first round.
const [alone] = document.querySelector("section") ? [] : answers.values();
if (alone && matchMedia("(prefers-reduced-motion: reduce)").matches) alone.show(1);
else if (alone) alone.clock.toggle();
if (root.clientWidth < 480) document.getElementById("legend").open = false;
for (const section of document.querySelectorAll("section")) {
  const lanes = [...section.querySelectorAll("article")].map((article) => answers.get(article)).filter(Boolean);
  if (lanes.length) new Race(section, lanes);
}

document.getElementById("theme").addEventListener("click", () => {
  const light = matchMedia("(prefers-color-scheme: light)").matches;
  const now = root.dataset.theme || (light ? "light" : "dark");
  root.dataset.theme = now === "light" ? "dark" : "light";
});
