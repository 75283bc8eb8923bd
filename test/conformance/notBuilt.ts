/** Thrown by an operation that the product has no part for yet, so that its cases fail by that name. */
export class NotBuilt extends Error {}
