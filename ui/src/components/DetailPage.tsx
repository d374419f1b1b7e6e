import { Anchor, Breadcrumbs } from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { Page } from './Page';
import { QueryState } from './states';

interface DetailPageProps<T> {
  /** The screen that lists things of this kind. */
  list: { to: string; label: string };
  /** The name of the thing, as the heading and the title of the tab have it. */
  name: string;
  tab?: string;
  query: UseQueryResult<T>;
  actions?: (data: T) => ReactNode;
  children: (data: T) => ReactNode;
}

/** The page of one thing: the way back to its list, its name, what can be done with it, and its parts. */
export function DetailPage<T>({ list, name, tab = name, query, actions, children }: DetailPageProps<T>) {
  return (
    <Page
      tab={tab}
      title={
        <Breadcrumbs>
          <Anchor component={Link} to={list.to} inherit>
            {list.label}
          </Anchor>
          <span className="mono big">{name}</span>
        </Breadcrumbs>
      }
      actions={query.data !== undefined && actions?.(query.data)}
    >
      <QueryState query={query}>{children}</QueryState>
    </Page>
  );
}
