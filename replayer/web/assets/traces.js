// The Traces page: a button starts a replay as the form says, and leads to its figures.

const { base } = window.replayer;
const form = document.getElementById("replay");
const refused = document.getElementById("refused");

const start = async (event) => {
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const answer = await fetch(`${base}replay`, { method: "POST", body });
  const { success, message } = await answer.json();
  refused.hidden = success;
  refused.textContent = message;
  if (success) location.assign(`${base}live`);
  else refused.scrollIntoView({ block: "center" });
};
form?.addEventListener("submit", start);
