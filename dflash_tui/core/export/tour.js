"use strict";
// Each part is drawn from the share of its time that has passed; one clock runs through all of them.
const root = document.documentElement;
root.classList.add("js");
const { seconds, lanes } = JSON.parse(document.getElementById("data").textContent);
const parts = [...document.querySelectorAll("section")];
const button = document.getElementById("play");
const bar = document.getElementById("progress");
const total = seconds.reduce((sum, each) => sum + each, 0);
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const LEAD = 1, REST = 4;
let now = 0, timer = 0, seen = 0;

const pictures = {
  alone(part, share) {
    const tokens = [...part.querySelectorAll(".t")], due = Math.round(share * tokens.length);
    tokens.forEach((token, place) => {
      token.classList.toggle("later", place >= due);
      token.classList.toggle("landed", place === due - 1 && share < 1);
    });
  },
  passes(part, share) {
    part.querySelectorAll("[data-end]").forEach((pass) => {
      pass.classList.toggle("waiting", share < pass.dataset.end - 1e-9);
    });
  },
  round(part, share) {
    const phase = Math.min(Math.floor(share * 5), 4);
    part.querySelector(".picture").className = `picture phase-${phase}`;
    part.classList.toggle("done", share === 1);
  },
  race(part, share) {
    const length = Math.max(...lanes.map((lane) => lane.at(-1)[0])), time = share * length;
    [...part.querySelectorAll(".lane")].forEach((lane, place) => {
      const rounds = lanes[place], ended = rounds.filter(([end]) => end <= time), over = share === 1;
      const [took, tokens] = rounds.at(-1), [, written, run] = ended.length ? ended.at(-1) : [0, 0, 0];
      lane.querySelector("progress").value = over ? took / length : written / tokens;
      const passes = `${run} pass${run === 1 ? "" : "es"} of the target`, wrote = `${written} token${written === 1 ? "" : "s"}`;
      lane.querySelector("output").textContent = `${over ? `${took.toFixed(2)} s` : wrote} · ${passes}`;
    });
  },
  number() {},
  words() {},
};

function draw() {
  let begin = 0, place = 0;
  while (place < parts.length - 1 && now >= begin + seconds[place]) begin += seconds[place++];
  const share = still ? 1 : Math.min(Math.max((now - begin - LEAD) / (seconds[place] - LEAD - REST), 0), 1);
  parts.forEach((part, each) => part.classList.toggle("now", each === place));
  pictures[parts[place].classList[0]](parts[place], share);
  bar.value = now / total;
  button.textContent = timer ? "❚❚ pause" : now >= total ? "▶ again" : "▶ go on";
  return [place, begin];
}

function frame(time) {
  now = Math.min(now + (time - seen) / 1000, total);
  seen = time;
  timer = now < total ? requestAnimationFrame(frame) : 0;
  draw();
}

function pause() {
  cancelAnimationFrame(timer);
  timer = 0;
  draw();
}

function play() {
  if (now >= total) now = 0;
  seen = performance.now();
  timer = requestAnimationFrame(frame);
  draw();
}

function go(by) {
  const [place] = draw(), target = Math.min(Math.max(place + by, 0), parts.length - 1);
  now = seconds.slice(0, target).reduce((sum, each) => sum + each, 0);
  draw();
}

button.addEventListener("click", () => timer ? pause() : play());
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.key === "Tab" || event.key === "Shift") return;
  if (event.key === "ArrowRight" || event.key === "PageDown") go(1);
  else if (event.key === "ArrowLeft" || event.key === "PageUp") go(-1);
  else if (event.key === " ") timer ? pause() : play();
  else if (event.key !== "Enter" || event.target !== button) pause();
  if (event.key === " " || event.key.startsWith("Page")) event.preventDefault();
});
if (still) draw();
else play();
