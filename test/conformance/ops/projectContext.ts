/** What a project's context is made of, and the two tools that answer from it. */
import { basename } from 'node:path';
import {
  AnswerCache,
  type ContextModel,
  type ContextQuestion,
  ProjectContext,
  saysNothing,
} from '../../../src/plans/contextAnswer.ts';
import {
  chunksOf,
  corpusChunks,
  corpusDigest,
  corpusFiles,
  sentencesOf,
} from '../../../src/plans/contextCorpus.ts';
import { contextText, contextTools } from '../../../src/plans/contextServer.ts';
import type { Json } from '../caseFile.ts';
import type { CaseWorld } from '../caseWorld.ts';
import type { Operations } from '../operations.ts';

const { signal } = new AbortController();

export const projectContextOperations: Operations = {
  split_sentences: async ({ when }) => ({ sentences: sentencesOf(String(when['text'])) }),

  async chunk({ given }) {
    const words = Array.from({ length: Number(given['words'] ?? 0) }, (_, at) => `w${at}`);
    const text = words.map(word => (given['sentence_each'] === true ? `${word}.` : word)).join(' ');
    const chunks = chunksOf('a.md', typeof given['text'] === 'string' ? given['text'] : text);
    return { chunks: chunks.length, chunk_words: chunks.map(chunk => chunk.text.split(' ').length) };
  },

  async walk_text({ given }, world) {
    world.write(given['files']);
    const chunks = await corpusChunks(await corpusFiles([world.tmp]));
    return { sources: [...new Set(chunks.map(({ source }) => source))] };
  },

  async walk_media({ given }, world) {
    world.write(given['files']);
    const media = (await corpusFiles([world.tmp])).filter(({ kind }) => kind !== 'text');
    return { names: media.map(({ name }) => basename(name)).sort() };
  },

  async context_hash({ given }, world) {
    world.write(given['files']);
    const before = corpusDigest(await corpusFiles([world.tmp]));
    const again = corpusDigest(await corpusFiles([world.tmp]));
    world.write(given['then_write']);
    const after = corpusDigest(await corpusFiles([world.tmp]));
    return {
      changes: after !== before,
      stable: again === before,
      hex: /^[0-9a-f]{32}$/.test(before),
    };
  },

  async ctx_summarize({ given }, world) {
    const lines = Array.from({ length: 20 }, (_, at) => `- line ${at}`).join('\n');
    return said('summarize', {}, given['pipeline'], given['pipeline'] ? 'S' : lines, world);
  },

  async ctx_answer({ given, when }, world) {
    const query = String(given['query'] ?? when['query'] ?? 'q');
    const questions: ContextQuestion[] = [];
    const spoken = 'one\n\ntwo\nthree\nfour\nfive\nsix';
    const seen = await said(
      'answerQuestion',
      { query },
      given['pipeline'],
      given['pipeline'] ? 'A' : spoken,
      world,
      questions,
    );
    const isPlain = /everyday words, no code/.test(questions[0]?.rules ?? '');
    return { ...seen, style: isPlain ? 'non-technical' : 'technical' };
  },

  ctx_tools: async () => ({
    names: contextTools(new ProjectContext([], () => Promise.reject(new Error('not asked')))).map(
      ({ definition }) => definition.name,
    ),
  }),

  is_idk: async ({ when }) => ({ value: saysNothing(String(when['text'])) }),

  async semantic_cache({ given }) {
    const cache = new AnswerCache(Number(given['min_similarity'] ?? 0.85), () => Number(given['distance']));
    for (let count = 0; count < Number(given['cached']); count++) cache.keep(`question ${count}`, 'kept');
    return { hit: cache.find('another question') !== undefined };
  },
};

/** Asks a tool of a project with one file. `pipeline` is `ok`, or `raise` with a message. */
async function said(
  tool: string,
  input: { query?: string },
  pipeline: Json | undefined,
  reply: string,
  world: CaseWorld,
  questions: ContextQuestion[] = [],
) {
  world.write({ 'a.md': 'Text.' });
  const [, failure] = /^raise (.*)$/.exec(String(pipeline ?? 'ok')) ?? [];
  const model: ContextModel = {
    sees: true,
    async ask(question) {
      questions.push(question);
      if (failure !== undefined) throw new Error(failure);
      return reply;
    },
  };
  const { text } = await contextText(new ProjectContext([world.tmp], async () => model), tool, input, signal);
  return { value: text, content: text, lines: text.split('\n').length };
}
