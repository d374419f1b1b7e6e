/** Server-sent events of one response, read with `fetch` because `EventSource` cannot send a key. */
import { createParser, type EventSourceMessage } from 'eventsource-parser';

/** Yields the events of each chunk together, so that a reader can show them in one step. Ends with the response. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<EventSourceMessage[]> {
  let gathered: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => gathered.push(event) });
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(value);
      if (gathered.length > 0) {
        const events = gathered;
        gathered = [];
        yield events;
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
