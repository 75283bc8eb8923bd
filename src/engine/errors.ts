/** The errors that the engine throws on purpose. */
export { Interruption, reasonOf, TelosError } from './core/errors.ts';
