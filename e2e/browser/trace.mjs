// How long the page keeps its main thread busy, from the performance trace of the browser.

/** The tasks of the main thread in a trace, longest first, in milliseconds of CPU: other work of the machine does not count. */
function tasksOf(events) {
  const place = ({ pid, tid }) => `${pid}/${tid}`;
  const main = new Set(events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(place));
  const tasks = events.filter((event) => event.ph === "X" && event.name.endsWith("RunTask") && main.has(place(event)));
  return tasks.map(({ tdur = 0 }) => tdur / 1000).sort((a, b) => b - a);
}

/** The longest task of the main thread while `body` runs, in milliseconds of CPU. */
export async function longestTask(browser, body) {
  const session = await browser.newBrowserCDPSession();
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"] } });
  await body();
  const complete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.end");
  await complete;
  await session.detach();
  const [longest] = tasksOf(events);
  if (longest === undefined) throw new Error("the trace has no task of the page");
  return longest;
}
