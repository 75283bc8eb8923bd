/** Tools that do nothing but show the person what is planned, and ask them. */
import { todoStates, todosIn } from '@telos/protocol/todos';
import { type Tool, textProperty, toolError } from './tool.ts';

const mostChoices = 8;
/** In characters. */
const longestQuestion = 2000;
const longestChoice = 200;

const updateTodosTool: Tool = {
  definition: {
    name: 'update_todos',
    description:
      'Shows the user the to-do list of work in several steps: first the whole, and again whenever a step begins or is done.',
    inputSchema: {
      type: 'object',
      properties: {
        items: {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              text: textProperty('The step, in a few words.'),
              state: { type: 'string', enum: todoStates },
            },
            required: ['text', 'state'],
          },
        },
      },
      required: ['items'],
    },
  },
  access: 'network',
  async execute(input) {
    const todos = todosIn(input);
    if (typeof todos === 'string') return toolError(`The list was not changed: ${todos}`);
    const done = todos.filter(({ state }) => state === 'done').length;
    return { content: `The user sees the list: ${done} of ${todos.length} done.`, isError: false };
  },
};

const askUserTool: Tool = {
  definition: {
    name: 'ask_user',
    description:
      'Asks the user one question and returns the answer. Only for what you cannot find out and what changes the result; never for passwords or keys.',
    inputSchema: {
      type: 'object',
      properties: {
        question: { type: 'string', description: 'One question, in the language of the user.' },
        choices: {
          type: 'array',
          maxItems: mostChoices,
          items: { type: 'string', maxLength: longestChoice },
          description: 'Answers to choose from, the likeliest first.',
        },
      },
      required: ['question'],
    },
  },
  // Nothing else asks meanwhile: a person reads one question at a time.
  access: 'write',
  longest: { question: longestQuestion },
  async execute({ question, choices = [] }, { askUser }) {
    if (typeof question !== 'string' || question.trim() === '') return toolError('The question is empty.');
    const isList =
      Array.isArray(choices) &&
      choices.length <= mostChoices &&
      choices.every(each => typeof each === 'string' && each.trim() !== '' && each.length <= longestChoice);
    if (!isList)
      return toolError(
        `"choices" must be at most ${mostChoices} texts of at most ${longestChoice} characters each.`,
      );
    if (!askUser) return toolError(undecided);
    const { answer, refusal } = await askUser(question, [...new Set<string>(choices)]);
    if (answer !== undefined) return { content: `The user answers: ${answer}`, isError: false };
    return { content: refusal === undefined ? undecided : `${refusal} ${undecided}`, isError: false };
  },
};

const undecided = 'There is no answer: decide yourself, and say in your answer what you have assumed.';

export const personTools: readonly Tool[] = [updateTodosTool, askUserTool];
