import { afterEach, expect, test, vi } from 'vitest';
import { type BoardEvent, EventStream } from './event-stream';

const streams: EventStream[] = [];
afterEach(() => {
  for (const stream of streams.splice(0)) stream.stop();
  vi.unstubAllGlobals();
});

/** A stream over a `fetch` that answers the requests in this order, and fails after the last. */
function opened(answers: (Response | (() => Response))[]) {
  const asked: Request[] = [];
  vi.stubGlobal('fetch', async (request: Request) => {
    asked.push(request);
    const next = answers.shift();
    if (next === undefined) throw new TypeError('no network');
    return typeof next === 'function' ? next() : next;
  });
  const stream = new EventStream();
  streams.push(stream);
  const events: BoardEvent[] = [];
  stream.onEvent((event) => events.push(event));
  stream.start();
  return { stream, events, asked };
}

const sse = (text: string) => new Response(text, { headers: { 'content-type': 'text/event-stream' } });

test('events arrive with their type and data, whatever the chunks', async () => {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of ['id: 7\nevent: cat', 'alog\ndata: {"revi', 'sion": 3}\n\n: beat\n\n'])
        controller.enqueue(encoder.encode(part));
    },
  });
  const { stream, events } = opened([new Response(body)]);
  await vi.waitFor(() => expect(events).toEqual([{ type: 'catalog', data: { revision: 3 } }]));
  expect(stream.state().status).toBe('live');
});

test('it reconnects with the last id', async () => {
  const { asked, events, stream } = opened([sse('id: 41\nevent: server\ndata: {"name": "a"}\n\n'), sse(': hello\n\n')]);
  await vi.waitFor(() => expect(asked.length).toBeGreaterThanOrEqual(2), { timeout: 5_000 });
  expect(asked[0].headers.get('last-event-id')).toBeNull();
  expect(asked[1].headers.get('last-event-id')).toBe('41');
  await vi.waitFor(() => expect(events.map(({ type }) => type)).toContain('reconnected'), { timeout: 5_000 });
  await vi.waitFor(() => expect(stream.state().status).toBe('disconnected'), { timeout: 5_000 });
});

test('a refusal ends the attempts and says so', async () => {
  const { stream, events } = opened([new Response('', { status: 401 })]);
  await vi.waitFor(() => expect(stream.state().status).toBe('refused'));
  expect(events).toEqual([{ type: 'refused', data: {} }]);
});

test('a board without the stream is polled', async () => {
  const { stream } = opened([new Response('', { status: 404 }), new Response('ok')]);
  await vi.waitFor(() => expect(stream.state().status).toBe('polling'));
});

test('the key goes with the request and not into the address', async () => {
  sessionStorage.setItem('switchboard-key', 'sb_secret');
  const { asked } = opened([sse('')]);
  await vi.waitFor(() => expect(asked).not.toHaveLength(0));
  expect(asked[0].headers.get('authorization')).toBe('Bearer sb_secret');
  expect(asked[0].url).not.toContain('sb_secret');
});
