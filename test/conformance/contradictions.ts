/** The cases that the product does not follow on purpose, each with the reason. They must fail: one that passes is an error here. */
export const contradictions: Readonly<Record<string, string>> = {
  'EN-15': 'A # behind a blank begins a comment in .env, as elsewhere; a value that has one is quoted.',
  'FM-16':
    'A missing closing fence takes the leading key lines, so that the description of such a skill is not lost.',
  'DS-07':
    'The search goes down to the first skill file of a branch; public packs group their skills in folders.',
  'DS-08': 'The skill file is found in any case, as it is written in public packs.',
  'AD-06':
    'A pack without agent.toml, mcp.json and files of its own beside skills/ works where the person stands (decision 1 on real skills).',
  'KW-10':
    'Names of equal length win in the order of the alphabet; skills that lie in folders have no order of their own.',
  'CM-02': 'The folder of skills of a linked agent stands for its pack: its card is bound to those files.',
  'CM-09': 'An entry without a folder of skills is reported, and is not an agent: it has nothing to run.',
  'TL-02': 'A model that says nothing has given no answer: it is asked once more, then the run fails.',
  'TL-03': 'A model that says nothing has given no answer: it is asked once more, then the run fails.',
  'TL-04': 'The texts of two turns are kept apart in a pipe too, where they ran together as one word.',
  'PB-06': 'Blank lines separate the parts; a line of hyphens would belong to the Markdown of the body.',
  'BT-27': "An empty folder is listed as '(empty)', since some models take an empty result for a failure.",
  'PS-05':
    'Without a key or an Ollama, skills play their recorded runs, so that there is something to see at once.',
  'MC-10': 'Every result has content here, also an empty one, which says that it is empty.',
  'MC-11': 'Two blocks of text are two paragraphs, with a blank line between them.',
  'TL-05': 'Stdout holds what the model said; a run that only writes is told by its calls.',
  'TL-13': 'More than a warning: the run ends as failed and says that the answer was cut off.',
  'MP-14': 'Two blocks of text are two paragraphs, with a blank line between them.',
  'MP-17': 'An empty result says that the tool returned nothing, since some providers refuse an empty text.',
  'CL-12': 'The message names the folder that is missing and what to give instead.',
  'V3C-02': 'Version 4 needs no agents.toml: agents are found by their folders.',
  'V3I-06': 'Version 4 installs into the skills folder and keeps no registry (V3I-01).',
  'IB-08': 'No provider of ours finds skills by itself, so all are told where skills lie.',
  'PX-03':
    'A ~ is refused, since a command that only looks runs without a shell to expand it; no path of it is opened.',
  'PX-06': 'A command that is joined with && is refused as a whole; no path of it is opened.',
  'PX-14':
    'A flag that is not known to only look is refused with the whole command; no path of it is opened.',
  'V3I-01':
    'Version 4 installs into the skills folder and keeps no registry; only an agent that version 3 installed is replaced where it stands.',
  'V3I-02': 'Version 4 installs a pack without an agent.toml under the name of its folder (IN-04).',
  'V3I-03': 'Version 4 installs into the skills folder; mcp.json arrives there (CL-19).',
  'V3I-07': 'Version 4 finds an installed agent by its folder and writes no entry into agents.toml.',
  'V3I-08': 'Version 4 finds an installed agent by its folder and writes no entry into agents.toml.',
  'V3I-14': 'Version 4 installs into the skills folder; the scripts of a skill arrive there.',
  'GT-05':
    'Section 14 of the design: the tool is listed as answerQuestion, its name in the specification; a call as answer_question is taken too.',
  'RL-19':
    'Section 7 of the design: a verdict is a call with a schema, so a denial without a reason is sent back to the reviewer.',
};
