import assert from 'node:assert/strict';
import { overLimit, PlanBudget, type Spent } from '../../src/plans/planBudget.ts';
import type { Usage } from '../../src/protocol/run.ts';
import { spoken } from '../../src/protocol/text.ts';

const usage = (cost: Usage['cost'], tokens = 0): Usage => ({
  inputTokens: tokens,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cost,
});
const spent = (more: Partial<Spent> = {}): Spent => ({ workedMs: 0, added: {}, ...more });

const model = { name: 'anthropic', model: 'claude-haiku-4-5' };

describe('planBudget', () => {
  const said = (...args: Parameters<typeof overLimit>): string => spoken(overLimit(...args) ?? []);

  it('limits cost, tokens and minutes over all that the journal has', () => {
    assert.equal(said({}, spent({ usage: usage(100, 1e9) })), '');
    assert.equal(said({ maxCost: 1 }, spent({ usage: usage(0.99) })), '');
    assert.equal(
      said({ maxCost: 1 }, spent({ usage: usage(1) })),
      'The budget of this plan is used up: $1.0000 of $1. Add to it to go on with the same plan.',
    );
    assert.match(said({ maxTokens: 10 }, spent({ usage: usage(0, 12) })), /12 of 10 tokens/);
    assert.match(said({ maxMinutes: 2 }, spent({ workedMs: 130_000 })), /2\.2 of 2 minutes/);
    assert.equal(said({ maxCost: 1 }, spent({ usage: usage('unknown', 5) })), '');
  });

  it('goes on after a person has added to it', () => {
    const used = spent({ usage: usage(1.5) });
    assert.notEqual(said({ maxCost: 1 }, used), '');
    assert.equal(said({ maxCost: 1 }, { ...used, added: { maxCost: 1 } }), '');
    assert.notEqual(said({ maxCost: 0 }, spent()), '');
  });

  it('asks no model whose cost it cannot count, where a cost is limited', async () => {
    const unknown = { name: 'openai', model: 'my-own-model' };
    const open = (limits: object) =>
      new PlanBudget(
        () => limits,
        () => spent(),
      ).step();
    await assert.rejects(
      open({ maxCost: 1 }).check(unknown),
      /The price of my-own-model \(openai\) is not known, so the limit of cost cannot be kept: limits\.maxCost in the plan\./,
    );
    assert.deepEqual(await open({ maxTokens: 9 }).check(unknown), []);
    const step = open({ maxCost: 1 });
    step.add(usage('unknown'));
    await assert.rejects(step.check(model), { code: 'budget' });
  });

  it('knows what steps use at the same time, and counts none of it twice', async () => {
    let known = spent({ usage: usage(0.5) });
    const budget = new PlanBudget(
      () => ({ maxCost: 1 }),
      () => known,
    );
    const [one, other] = [budget.step(), budget.step()];
    assert.deepEqual(await one.check(model), []);
    one.add(usage(0.3));
    other.add(usage(0.1));
    assert.deepEqual(await other.check(model), []);
    one.add(usage(0.2));
    await assert.rejects(other.check(model), { code: 'budget' });
    await assert.rejects(one.check(model), /\$1\.1000 of \$1/);
    known = spent({ usage: usage(0.6) });
    one.close();
    assert.equal(budget.overText, undefined);
    other.add(undefined);
    assert.deepEqual(await other.check(model), []);
  });
});
