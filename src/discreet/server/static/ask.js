// SPDX-License-Identifier: Apache-2.0
// The question page: an editor in the place of the text area, a plan that follows what is typed, and
// the focus on what arrived. Without this file the page works with reloads.

const form = document.getElementById("question");
const text = document.getElementById("sql");
const live = document.getElementById("live");
const PAUSE = 250, ATTEMPTS = 5;
let editor = null, tools = null, timer = 0, attempts = 0;

function plan() {
  clearTimeout(timer);
  timer = setTimeout(() => text.value.trim() && live.dispatchEvent(new Event("plan")), PAUSE);
}

function ask() {
  const button = document.getElementById("ask");
  if (button) form.requestSubmit(button);
}

// What the server says about a line of the question is underlined there.
function underline() {
  if (!editor) return;
  const problem = document.querySelector(".problem[data-line]");
  const { line, from, to } = problem ? problem.dataset : {};
  const where = problem ? { line: Number(line), from: Number(from), to: Number(to) } : null;
  tools.underline(editor, where, problem ? problem.querySelector("h2, p").textContent.trim() : "");
}

async function startEditor() {
  tools = await import(text.dataset.editor);
  const parent = document.createElement("div");
  text.before(parent);
  editor = tools.makeEditor({
    parent,
    text: text.value,
    nonce: text.dataset.nonce,
    schema: JSON.parse(text.dataset.schema),
    label: "Question",
    describedBy: "sql-help",
    change: (value) => { text.value = value; plan(); },
    submit: ask,
  });
  text.hidden = true;
  text.required = false;
  document.querySelector("label[for=sql]").addEventListener("click", () => editor.focus());
}

function say(message) {
  const answer = document.getElementById("answer");
  const card = document.createElement("p");
  card.className = "card fair";
  card.setAttribute("role", "status");
  card.textContent = message;
  answer.replaceChildren(card);
}

form.addEventListener("input", plan);
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented) {
    event.preventDefault();
    ask();
  }
});

// A button that writes the amount that fits into the form.
document.addEventListener("click", (event) => {
  const use = event.target.closest(".use");
  if (!use) return;
  form.elements.how.value = use.dataset.how;
  form.elements[use.dataset.how].value = use.dataset.amount;
  form.elements[use.dataset.how].focus();
  plan();
});

const busy = (id, is) => document.getElementById(id)?.setAttribute("aria-busy", String(is));
const target = (event) => event.detail?.ctx?.target?.id;
document.addEventListener("htmx:before:request", (event) => target(event) && busy(target(event), true));
document.addEventListener("htmx:finally:request", (event) => target(event) && busy(target(event), false));
document.addEventListener("htmx:after:swap", (event) => {
  underline();
  if (target(event) !== "answer") return;
  attempts = 0;
  document.querySelector("#answer .arrived")?.focus();
  if (document.querySelector("#answer[data-changed]")) plan();
});

// A question has the same key when it is asked again, so that nothing is paid twice.
document.addEventListener("htmx:error", (event) => {
  if (target(event) !== "answer" || attempts >= ATTEMPTS) return;
  attempts += 1;
  say(`Not connected. Asking again is safe: nothing is paid twice. Attempt ${attempts} of ${ATTEMPTS} follows.`);
  setTimeout(ask, 1000 * 2 ** attempts);
});

startEditor();
if (text.value.trim()) plan();
