/** Chooses the skill that a request means. */
export { eachWord, isOneEditAway } from './routing/language.ts';
export { Router } from './routing/route.ts';
export type { RouteResult } from './routing/routeResult.ts';
export { requestsIn } from './routing/searchDocument.ts';
export { type Ranked, SearchIndex } from './routing/searchIndex.ts';
export { TaughtLines, type TeachingPlan } from './routing/teaching.ts';

export const importGlossary = () => import('./routing/glossary.ts');
export const importLanguage = () => import('./routing/language.ts');
