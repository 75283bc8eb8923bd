import { totalOf } from './order.mjs';

const lines = [{ price: 3, count: 2 }];
if (totalOf(lines) !== 6) throw new Error('the total is wrong');
if (totalOf(lines, 0.5) !== 3) throw new Error('the discount is not taken off');
console.log('ok');
