import { prices } from './prices.js';

/** Returns what an order costs, in cents. An order holds the number of pieces by product. */
export function total(order) {
  let sum = 0;
  for (const [product, pieces] of Object.entries(order)) sum += prices[product] * pieces;
  return sum;
}
