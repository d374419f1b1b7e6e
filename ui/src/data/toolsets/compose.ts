/** Toolsets: what they hold and cost, and how a selection of tools becomes one. Pure. */
import type { components } from '../../api/schema';

type Schemas = components['schemas'];
export type Tool = Pick<Schemas['ToolView'], 'name' | 'server' | 'tool' | 'description' | 'input_schema'>;
export type Toolset = Schemas['ToolsetView'];
export interface ToolsetRules {
  tools: string[];
  servers: string[];
}

const BYTES_PER_TOKEN = 4;

/** An estimate of what the declaration of a tool costs in every request. */
export function estimate({ name, description, input_schema }: Tool): number {
  const text = JSON.stringify({ name, description, parameters: input_schema });
  return Math.ceil(text.length / BYTES_PER_TOKEN);
}

export interface CostedToolset extends Toolset {
  cost: number;
}

/** Toolsets with the cost of their tools, those that hold every word. */
export function costed(toolsets: Toolset[], costs: ReadonlyMap<string, number>, text: string): CostedToolset[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return toolsets
    .filter(({ name, description, when_to_use, members }) => {
      const all = `${name} ${description} ${when_to_use ?? ''} ${members.join(' ')}`.toLowerCase();
      return words.every((word) => all.includes(word));
    })
    .map((toolset) => ({ ...toolset, cost: total(toolset.members, costs) }));
}

export const total = (names: Iterable<string>, costs: ReadonlyMap<string, number>): number =>
  [...names].reduce((sum, name) => sum + (costs.get(name) ?? 0), 0);

export function matchingTools(tools: Tool[], text: string): Tool[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return tools.filter(({ name, description }) => {
    const all = `${name} ${description ?? ''}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

export interface NewToolset {
  name: string;
  description: string;
  when_to_use: string;
}

/** What is wrong with the fields, by field. */
export function faultsOf({ name, description }: NewToolset, taken: string[]): { name?: string; description?: string } {
  const faults: { name?: string; description?: string } = {};
  if (name.trim() === '') faults.name = 'A toolset needs a name.';
  else if (!/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name.trim()))
    faults.name = 'Letters, digits, `_` and `-`, a letter or digit first.';
  else if (taken.includes(name.trim())) faults.name = `There is a toolset ${name.trim()} already.`;
  if (description.trim() === '') faults.description = 'Models read it when they choose a toolset.';
  return faults;
}

export interface NamedEntry {
  name: string;
  description: string;
  when_to_use?: string;
  tools?: string[];
  servers?: string[];
}

/** The entry of the toolset in the configuration. */
export function entryOf({ name, description, when_to_use }: NewToolset, rules: ToolsetRules): NamedEntry {
  return {
    name: name.trim(),
    description: description.trim(),
    ...(when_to_use.trim() === '' ? {} : { when_to_use: when_to_use.trim() }),
    ...(rules.tools.length === 0 ? {} : { tools: rules.tools }),
    ...(rules.servers.length === 0 ? {} : { servers: rules.servers }),
  };
}
