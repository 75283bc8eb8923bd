/** Better versions of a skill, tried before they are kept. */
export { keepProposal } from './keepProposal.ts';
export { type Defect, type Proposal, proposalCost, proposalRequest, propose } from './proposal.ts';
export {
  compared,
  copyProposed,
  keepRecordings,
  knownBefore,
  type ProposedSkill,
  routingDefect,
  type Tried,
  tryEvals,
  tryTriggers,
} from './tryProposal.ts';
