import type { components } from './schema';

export type Problem = components['schemas']['Problem'];
export type FieldError = components['schemas']['FieldError'];

/** A refusal of the board (RFC 9457), or a request that did not reach it (`status` 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.detail || problem.title);
    this.name = 'ApiError';
  }

  /** The way out, when the board knows one. */
  get hint(): string | undefined {
    return this.problem.hint ?? undefined;
  }

  /** What is wrong at which JSON pointer of the request. */
  get errors(): FieldError[] {
    return this.problem.errors ?? [];
  }
}

/** The problem in the body of a response, or one made from its status. */
export function problemOf(status: number, body: unknown): ApiError {
  if (typeof body === 'object' && body !== null && 'title' in body) return new ApiError(status, body as Problem);
  const title = status === 0 ? 'The board does not answer' : `The board answered with status ${status}`;
  return new ApiError(status, { type: 'about:blank', title, status, detail: typeof body === 'string' ? body : '' });
}

/** A failure of the network, as an error that reads like the others. */
export function unreachable(cause: unknown): ApiError {
  return new ApiError(0, {
    type: 'about:blank',
    title: 'The board does not answer',
    status: 0,
    detail: 'The board does not answer. It may be restarting, or the network is down.',
    hint: cause instanceof Error ? cause.message : undefined,
  });
}
