import assert from 'node:assert/strict';
import { test } from 'node:test';
import { total } from '../src/order.js';

test('adds up an order', () => {
  assert.equal(total({ roll: 4, loaf: 1 }), 560);
});

test('costs nothing without products', () => {
  assert.equal(total({}), 0);
});
