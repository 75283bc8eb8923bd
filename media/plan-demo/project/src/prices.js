/** Prices in cents, by product. */
export const prices = { roll: 45, pretzel: 95, loaf: 380, cake: 2400 };
