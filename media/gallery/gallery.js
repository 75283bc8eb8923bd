/** Filters the list of skills as words are typed, and plays a recorded run step by step. Without it both are shown whole. */
const search = document.getElementById('search');
if (search) {
  const rows = [...document.querySelectorAll('.skills li')];
  const texts = rows.map(row => row.textContent.toLowerCase());
  const boxes = ['measured', 'replay', 'clean'].map(id => document.getElementById(id));
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const flags = boxes.filter(box => box.checked).map(({ id }) => id);
    let count = 0;
    for (const [index, row] of rows.entries()) {
      const own = row.dataset.flags.split(' ');
      const isShown =
        words.every(word => texts[index].includes(word)) && flags.every(flag => own.includes(flag));
      row.hidden = !isShown;
      if (isShown) count += 1;
    }
    document.getElementById('count').textContent =
      count === 0 ? 'No skill has all of this. Take a word away.' : `${count} of ${rows.length} skills`;
  };
  for (const input of [search, ...boxes]) input.addEventListener('input', filter);
}

const play = document.getElementById('play');
if (play) {
  const steps = [...document.querySelectorAll('#steps li')];
  /** The whole run takes ten seconds, however long it is. In milliseconds. */
  const pause = 10_000 / Math.max(1, steps.length);
  let timer;
  play.hidden = false;
  play.addEventListener('click', () => {
    clearInterval(timer);
    for (const step of steps.slice(1)) step.hidden = true;
    let next = 1;
    timer = setInterval(() => {
      if (next >= steps.length) clearInterval(timer);
      else steps[next++].hidden = false;
    }, pause);
  });
}
