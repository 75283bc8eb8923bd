/** Makes small breaks of a source file from the compiler's syntax tree: each is one change that a test should notice. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type {
  BinaryExpression,
  CallExpression,
  ConditionalExpression,
  ExpressionStatement,
  IfStatement,
  Node,
  SourceFile,
  Statement,
} from 'typescript/unstable/ast';
import { SyntaxKind } from 'typescript/unstable/ast';
import {
  isBinaryExpression,
  isBlock,
  isCallExpression,
  isConditionalExpression,
  isElementAccessExpression,
  isExpressionStatement,
  isIfStatement,
  isNumericLiteral,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isStringLiteral,
  isTypeNode,
  isVariableDeclaration,
} from 'typescript/unstable/ast/is';
import { API } from 'typescript/unstable/sync';

export type BreakKind = 'guard' | 'and-or' | 'negate' | 'some-every' | 'statement' | 'limit';

export interface Break {
  /** Relative to the root. */
  file: string;
  /** Counted from 1. */
  line: number;
  kind: BreakKind;
  /** The line in which the break begins, before and after it, without the space around. */
  before: string;
  after: string;
  /** What replaces the characters of the file from `start` to `end`. */
  start: number;
  end: number;
  text: string;
}

/** A larger number is a size or a time, and one more of it makes no difference that counts. */
const largestLimit = 100;

/** Returns all breaks of the files, which belong to one of the TypeScript projects, in the order of the files. */
export function breaksOf(
  root: string,
  files: readonly string[],
  projects: readonly string[] = ['tsconfig.json', 'webview/tsconfig.json'],
): Break[] {
  const compiler = new API({ cwd: root });
  try {
    const snapshot = compiler.updateSnapshot({ openProjects: projects.map(path => join(root, path)) });
    return files.flatMap(file => {
      const trees = snapshot.getProjects().map(({ program }) => program.getSourceFile(join(root, file)));
      const tree = trees.find(one => one !== undefined);
      return tree ? breaksIn(file, tree, readFileSync(join(root, file), 'utf8')) : [];
    });
  } finally {
    compiler.close();
  }
}

/** Returns the text with the break in it. */
export const broken = (text: string, one: Pick<Break, 'start' | 'end' | 'text'>): string =>
  text.slice(0, one.start) + one.text + text.slice(one.end);

function breaksIn(file: string, tree: SourceFile, source: string): Break[] {
  const found: Break[] = [];
  const add = (kind: BreakKind, start: number, end: number, text: string): void => {
    const after = broken(source, { start, end, text });
    found.push({
      file,
      line: source.slice(0, start).split('\n').length,
      kind,
      before: lineAt(source, start),
      after: lineAt(after, start),
      start,
      end,
      text,
    });
  };
  const walk = (node: Node, parent: Node): void => {
    if (isTypeNode(node)) return;
    const start = node.getStart(tree);
    const textOf = (part: Node): string => source.slice(part.getStart(tree), part.end);
    for (const [kind, part, text] of changesOf(node, parent, textOf)) {
      add(kind, part === node ? start : part.getStart(tree), part.end, text);
    }
    node.forEachChild(child => walk(child, node));
  };
  tree.forEachChild(child => walk(child, tree));
  return found.sort((one, other) => one.start - other.start || one.kind.localeCompare(other.kind));
}

/** The kind, the part of the tree that is replaced, and its new text. */
type Change = [BreakKind, Node, string];

function changesOf(node: Node, parent: Node, textOf: (part: Node) => string): Change[] {
  if (isIfStatement(node)) return changesOfIf(node, textOf);
  if (isConditionalExpression(node)) return [negated(node, textOf)];
  if (isBinaryExpression(node)) return changesOfOperator(node, textOf);
  if (isCallExpression(node)) return changesOfCall(node);
  if (isExpressionStatement(node)) return isDroppable(node) ? [['statement', node, ';']] : [];
  if (isNumericLiteral(node) && isLimit(node, parent)) return [['limit', node, `${Number(node.text) + 1}`]];
  return [];
}

function changesOfIf(node: IfStatement, textOf: (part: Node) => string): Change[] {
  const guard = node.elseStatement === undefined && leaves(node.thenStatement);
  return [...(guard ? [['guard', node, ';'] satisfies Change] : []), negated(node, textOf)];
}

function negated(node: IfStatement | ConditionalExpression, textOf: (part: Node) => string): Change {
  const condition = isIfStatement(node) ? node.expression : node.condition;
  return ['negate', condition, `!(${textOf(condition)})`];
}

const otherOperator = new Map<SyntaxKind, [BreakKind, string]>([
  [SyntaxKind.AmpersandAmpersandToken, ['and-or', '||']],
  [SyntaxKind.BarBarToken, ['and-or', '&&']],
  [SyntaxKind.LessThanToken, ['limit', '<=']],
  [SyntaxKind.LessThanEqualsToken, ['limit', '<']],
  [SyntaxKind.GreaterThanToken, ['limit', '>=']],
  [SyntaxKind.GreaterThanEqualsToken, ['limit', '>']],
]);

function changesOfOperator(node: BinaryExpression, textOf: (part: Node) => string): Change[] {
  const other = otherOperator.get(node.operatorToken.kind);
  if (other === undefined) return [];
  const [kind, operator] = other;
  if (kind === 'limit') return [[kind, node.operatorToken, operator]];
  // In parentheses, since the other operator binds otherwise.
  return [[kind, node, `((${textOf(node.left)}) ${operator} (${textOf(node.right)}))`]];
}

function changesOfCall(node: CallExpression): Change[] {
  const called = node.expression;
  if (!isPropertyAccessExpression(called)) return [];
  const { text } = called.name;
  if (text !== 'some' && text !== 'every') return [];
  return [['some-every', called.name, text === 'some' ? 'every' : 'some']];
}

/** Returns true if the statement ends in leaving: the function, the loop, or the switch. */
function leaves(statement: Statement): boolean {
  const last = isBlock(statement) ? statement.statements.at(-1) : statement;
  return (
    last !== undefined &&
    [
      SyntaxKind.ReturnStatement,
      SyntaxKind.ThrowStatement,
      SyntaxKind.ContinueStatement,
      SyntaxKind.BreakStatement,
    ].includes(last.kind)
  );
}

/** Returns false for the call of the parent's constructor, without which no object of the class can be made. */
const isDroppable = ({ expression }: ExpressionStatement): boolean =>
  !isStringLiteral(expression) &&
  !(isCallExpression(expression) && expression.expression.kind === SyntaxKind.SuperKeyword);

/** Returns true for a small whole number that is compared, counted with, handed over, or named. */
const isLimit = (node: Node & { text: string }, parent: Node): boolean =>
  /^\d+$/.test(node.text) &&
  Number(node.text) <= largestLimit &&
  (isBinaryExpression(parent) ||
    isCallExpression(parent) ||
    isElementAccessExpression(parent) ||
    isPrefixUnaryExpression(parent) ||
    isVariableDeclaration(parent));

const lineAt = (text: string, at: number): string => {
  const end = text.indexOf('\n', at);
  return text.slice(text.lastIndexOf('\n', at - 1) + 1, end < 0 ? undefined : end).trim();
};
