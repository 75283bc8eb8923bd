/** The lock files of installed packs, and their updates. */
export {
  checkOnline,
  type LockedPlace,
  type PackUpdate,
  type RestoredPack,
  restorePacks,
  updatesFor,
  type VerifiedPack,
  verifyPacks,
} from './sources/locked.ts';
export { readSkillsLock } from './sources/skillsLock.ts';

export const importLocked = () => import('./sources/locked.ts');
