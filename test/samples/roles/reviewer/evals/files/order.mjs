export const totalOf = (lines, discount = 0) =>
  lines.reduce((sum, { price, count }) => sum + price * count, 0) * (1 - discount);
