// Questions to the server.

const problem = () => document.getElementById("problem");

export function complain(error) {
  const lost = error instanceof TypeError && /fetch/i.test(error.message);
  problem().textContent = lost
    ? "The server has stopped: run explore again, and open its new address."
    : error.message;
  problem().hidden = false;
}

/** Ask the server; the address of the page has the token. */
export async function ask(name, question = {}) {
  const response = await fetch(`ask/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  problem().hidden = true;
  return answer;
}

/**
 * Return a function that asks again whenever it is called: not more than one question is
 * under way, and of those that had to wait only the last one is asked.
 */
export function asking(name, question, show) {
  let busy = false;
  let waiting = false;
  return async function run() {
    if (busy) {
      waiting = true;
      return;
    }
    busy = true;
    do {
      waiting = false;
      try {
        const asked = question();
        if (asked !== null) show(await ask(name, asked));
      } catch (error) {
        complain(error);
      }
    } while (waiting);
    busy = false;
  };
}
