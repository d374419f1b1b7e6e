/**
 * The parameters of the address. A change of the address reaches the screens a moment after it was asked for: changes that are
 * asked for meanwhile are made on top of it, so that none undoes another.
 */
import { useCallback, useEffect } from 'react';
import { useLocation, useNavigate, useNavigationType } from 'react-router';

interface Ahead {
  pathname: string;
  search: string;
  until: number;
}

/** What was asked for and is not on the screen yet. */
let ahead: Ahead | undefined;
/** A change that does not arrive within so many milliseconds was overtaken by another address. */
const ARRIVES = 1000;

const isAhead = (pathname: string): boolean => ahead?.pathname === pathname && performance.now() < ahead.until;

type Next = Record<string, string> | ((before: URLSearchParams) => URLSearchParams);

export type SetSearch = (next: Next, options?: { replace?: boolean }) => void;

export function useSearch(): [URLSearchParams, SetSearch] {
  const { pathname, search } = useLocation();
  const navigate = useNavigate();
  const type = useNavigationType();
  useEffect(() => {
    if (type === 'POP' || ahead?.pathname !== pathname || ahead.search === search) ahead = undefined;
  }, [pathname, search, type]);
  const set = useCallback<SetSearch>(
    (next, options) => {
      const before = new URLSearchParams(isAhead(pathname) ? ahead?.search : search);
      const text = (typeof next === 'function' ? next(before) : new URLSearchParams(next)).toString();
      ahead = { pathname, search: text === '' ? '' : `?${text}`, until: performance.now() + ARRIVES };
      void navigate({ search: ahead.search }, options);
    },
    [pathname, search, navigate],
  );
  return [new URLSearchParams(search), set];
}
