import { afterEach, expect, test, vi } from 'vitest';
import { LiveChat } from './live-chat';

afterEach(() => vi.unstubAllGlobals());

/** Answers the requests in this order; the last one for all that follow. */
function board(...answers: (() => Response)[]): Request[] {
  const asked: Request[] = [];
  vi.stubGlobal('fetch', async (request: Request) => {
    asked.push(request.clone());
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === undefined) throw new TypeError('no network');
    return answer();
  });
  return asked;
}

const event = (id: number, data: object) => `id: ${id}\nevent: e\ndata: ${JSON.stringify(data)}\n\n`;
const sse =
  (...events: string[]) =>
  () =>
    new Response(events.join(''), { headers: { 'content-type': 'text/event-stream' } });
const started = { type: 'started', turn: 'x', provider: 'demo', model: 'demo', tools_revision: 1 };
const say = (delta: string) => ({ type: 'content', delta });
const done = { type: 'done', status: 'completed', usage: { input_tokens: 0, output_tokens: 0 }, messages: 2 };
const paths = (asked: Request[]) =>
  asked.map((request) => `${request.method} ${new URL(request.url).pathname.split('/').at(-1)}`);

const over = (chat: LiveChat) =>
  vi.waitFor(() => expect(chat.state().turns.at(-1)?.phase).toBe('completed'), { timeout: 5_000 });

test('a lost connection resumes after the last event, and nothing is said twice', async () => {
  const asked = board(
    sse(event(1, started), event(2, say('one '))),
    sse(event(2, say('one ')), event(3, say('two')), event(4, done)),
  );
  const chat = new LiveChat('s');
  chat.send({ message: 'hi' }, 'hi');
  await over(chat);
  expect(chat.state().turns[0].steps).toMatchObject([{ kind: 'text', text: 'one two' }]);
  expect(paths(asked)).toEqual(['POST turns', 'GET events']);
  expect(asked[1].headers.get('last-event-id')).toBe('2');
});

test('a request that did not arrive is sent again with the same id', async () => {
  const away = () => {
    throw new TypeError('no network');
  };
  const asked = board(away, sse(event(1, started), event(2, done)));
  const chat = new LiveChat('s');
  chat.send({ message: 'hi' }, 'hi');
  await vi.waitFor(() => expect(chat.state().isLost).toBe(true));
  await over(chat);
  const ids = await Promise.all(asked.map(async (request) => ((await request.json()) as { id: string }).id));
  expect(ids[0]).toBe(ids[1]);
  expect(chat.state().isLost).toBe(false);
});

test('a message that is refused comes back with the reason', async () => {
  board(() => Response.json({ title: 'turn running', status: 409, detail: 'the turn runs' }, { status: 409 }));
  const chat = new LiveChat('s');
  chat.send({ message: 'hi' }, 'hi');
  await vi.waitFor(() => expect(chat.state().refusal).toMatchObject({ text: 'hi', error: { status: 409 } }));
  expect(chat.state().turns).toEqual([]);
});

test('a turn that the board has forgotten is over', async () => {
  const gone = () => Response.json({ title: 'unknown turn', status: 404, detail: 'gone' }, { status: 404 });
  board(sse(event(1, started), event(2, say('half'))), gone);
  const chat = new LiveChat('s');
  chat.send({ message: 'hi' }, 'hi');
  await vi.waitFor(() => expect(chat.state().turns[0]?.phase).toBe('lost'), { timeout: 5_000 });
});
