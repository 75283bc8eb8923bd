/** The default rules are data that a person can read: each that a decision names is there, with what it decides. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decide } from '../../../src/engine/policy/decide.ts';
import { runPolicy } from '../../../src/engine/policy/decision.ts';
import { defaultRule, defaultRules } from '../../../src/engine/policy/question.ts';
import { temporaryRun } from '../tools/temporaryRun.ts';

const sources = fileURLToPath(new URL('../../../src', import.meta.url));
const names =
  /['`]((?:floor|input|tool|policy|skill|surface|role|mode|workflow|grant|card|hook|read|write|run|fetch|mcp)\.[a-z-]+)['`]/g;
/** Files of the card's own names, and other words with a dot in them. */
const noRules = new Set(['policy.toml', 'write.as', 'skill.md', 'mcp.json', 'run.sh', 'run.redact']);

describe('the default rules', () => {
  it('are those that decisions name, no more and no less', () => {
    const texts = ['engine/core', 'engine/policy', 'engine/run', 'plans', 'fleet/stories'].flatMap(room =>
      readdirSync(join(sources, room))
        .filter(name => name.endsWith('.ts'))
        .map(name => readFileSync(join(sources, room, name), 'utf8')),
    );
    const used = new Set(texts.flatMap(text => [...text.matchAll(names)].map(match => match[1]!)));
    for (const kind of ['fetch', 'mcp', 'run'])
      for (const rest of ['secret', 'after-sensitive']) used.add(`${kind}.${rest}`);
    for (const state of ['new', 'changed']) used.add(`card.${state}`);
    for (const does of ['read', 'write']) used.add(`${does}.outside`);
    const wanted = [...used].filter(name => !noRules.has(name)).sort();
    assert.deepEqual(Object.keys(defaultRules).sort(), wanted);
  });

  it('say how long a yes holds if they ask, and when they apply in a sentence', () => {
    for (const [name, { action, yes, when }] of Object.entries(defaultRules)) {
      assert.match(action, /^(?:allow|ask|deny)$/, name);
      assert.equal(yes !== undefined, action === 'ask', name);
      assert.match(when, /^[A-Z].*\.$/, name);
    }
    assert.equal(defaultRule('toString'), undefined);
    assert.equal(defaultRule('policy.toml, line 3'), undefined);
  });

  it('decide how long a yes can hold', async () => {
    const run = temporaryRun();
    try {
      const places = {
        configDir: join(run.home, 'c'),
        dataDir: join(run.home, 'd'),
        home: run.home,
        env: {},
      };
      const { packDir, workingDir } = run.context;
      const skills = [{ dir: run.skill, file: join(run.skill, 'SKILL.md') }];
      const agent = { name: 'a', packDir, workingDir, source: 'user' as const, skills };
      const context = runPolicy(places, agent, run.context);
      await context.reviews!.accept(agent, await context.reviews!.cardOf(agent), new Date());
      for (const [name, input] of [
        ['read_file', { path: join(run.outside, '.env') }],
        ['read_file', { path: join(run.outside, 'a.txt') }],
        ['write_file', { path: 'AGENTS.md', content: '' }],
        ['write_file', { path: join(run.outside, 'a.txt'), content: '' }],
        ['write_file', { path: join(run.skill, 'a.md'), content: '' }],
        ['run_command', { command: 'make' }],
        ['fetch_url', { url: 'https://example.com' }],
        ['fetch_url', { url: 'http://127.0.0.1:1/' }],
      ] as const) {
        const decision = await decide({ id: '1', name, input }, context);
        assert.ok(decision.action === 'ask', `${name} ${JSON.stringify(input)}: ${decision.rule}`);
        const { yes } = defaultRule(decision.rule) ?? {};
        assert.equal(decision.scopes.at(-1), yes, decision.rule);
      }
    } finally {
      run.remove();
    }
  });
});
