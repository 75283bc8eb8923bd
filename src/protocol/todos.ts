/** The to-do list of a run, as a model gives it with each change. */
import type { JsonObject } from './run.ts';

export const todoStates = ['open', 'doing', 'done'] as const;

export interface Todo {
  text: string;
  state: (typeof todoStates)[number];
}

const mostTodos = 50;
/** In characters. */
const longestTodo = 300;

/** Returns the list of a call, or what is wrong with it. */
export function todosIn({ items }: JsonObject): readonly Todo[] | string {
  if (!Array.isArray(items)) return '"items" must be an array.';
  if (items.length > mostTodos) return `"items" has ${items.length} entries; the maximum is ${mostTodos}.`;
  const todos: Todo[] = [];
  for (const [index, item] of items.entries()) {
    const { text, state = 'open' } = (item ?? {}) as { text?: unknown; state?: unknown };
    if (typeof text !== 'string' || text.trim() === '') return `"text" of entry ${index + 1} is missing.`;
    if (text.length > longestTodo)
      return `"text" of entry ${index + 1} has ${text.length} characters; the maximum is ${longestTodo}.`;
    const known = todoStates.find(each => each === state);
    if (!known) return `"state" of entry ${index + 1} must be one of ${todoStates.join(', ')}.`;
    todos.push({ text: text.trim().replace(/\s+/g, ' '), state: known });
  }
  return todos;
}
