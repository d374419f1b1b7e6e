import { useEffect, useMemo, useState } from 'react';
import { ApiError } from '../../api/problem';
import { readDraft, writeDraft } from '../../components/draft';
import { changeSession, type SessionView } from '../../data/chat/queries';
import { queryClient } from '../../data/query-client';
import { isEmpty, type SessionDraft } from '../../data/session/draft';
import { type Step, stepsSince } from '../../data/session/queries';

export interface Conflict {
  /** The revision that the draft was made for. */
  from: number;
  /** What happened since, the newest first; absent if the board no longer knows. */
  steps?: Step[];
}

export interface StagedChange {
  draft: SessionDraft;
  isEmpty: boolean;
  isBusy: boolean;
  error?: unknown;
  conflict?: Conflict;
  edit: (next: (draft: SessionDraft) => SessionDraft) => void;
  apply: (when?: 'now') => void;
  discard: () => void;
}

interface Staged {
  draft: SessionDraft;
  /** The revision that was on the screen when the draft began. */
  revision?: number;
}

/** The changes of before a reload. */
function kept(id: string): Staged {
  try {
    return { draft: {}, ...(JSON.parse(readDraft(`session:${id}`) || '{}') as Partial<Staged>) };
  } catch {
    return { draft: {} };
  }
}

/** Changes of a session that wait for "apply". They are sent in one step, for the revision that was on the screen. */
export function useSessionDraft(session: SessionView): StagedChange {
  const [staged, setStaged] = useState<Staged>(() => kept(session.id));
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [conflict, setConflict] = useState<Conflict>();
  const { id, tools_revision: current } = session;
  useEffect(() => {
    writeDraft(`session:${id}`, isEmpty(staged.draft) ? '' : JSON.stringify(staged));
  }, [id, staged]);
  return useMemo(() => {
    const { draft, revision } = staged;
    const begin = () => {
      setError(undefined);
      setConflict(undefined);
    };
    const apply = async (when?: 'now') => {
      setBusy(true);
      begin();
      try {
        await changeSession(id, { ...draft, tools_revision: revision ?? current }, when);
        setStaged({ draft: {} });
      } catch (refused) {
        if (refused instanceof ApiError && refused.status === 409) {
          const from = revision ?? current;
          setConflict({ from, steps: await stepsSince(id, from).catch(() => undefined) });
          // The draft stays. The next attempt is for the revision that is shown then.
          setStaged({ draft });
          void queryClient.invalidateQueries({ predicate: ({ queryKey }) => queryKey[1] === id });
        } else setError(refused);
      } finally {
        setBusy(false);
      }
    };
    return {
      draft,
      isEmpty: isEmpty(draft),
      isBusy,
      error,
      conflict,
      edit: (next) =>
        setStaged((old) => {
          const changed = next(old.draft);
          return { draft: changed, revision: isEmpty(changed) ? undefined : (old.revision ?? current) };
        }),
      apply: (when) => void apply(when),
      discard: () => {
        begin();
        setStaged({ draft: {} });
      },
    };
  }, [staged, isBusy, error, conflict, id, current]);
}
