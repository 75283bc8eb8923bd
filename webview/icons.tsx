/** Draws icons as inline SVG, since the page's content policy blocks the editor's icon font. */

const shapes = {
  send: 'M1.7 2.3 14.5 8 1.7 13.7 3.4 8.6 9 8 3.4 7.4z',
  stop: 'M4 4h8v8H4z',
  space: '',
  done: 'm3 8.6 3.2 3.2L13 5',
  failed: 'm4 4 8 8m0-8-8 8',
  denied: 'M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2ZM4 4l8 8',
  stopped: 'M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2ZM5.8 5.8h4.4v4.4H5.8z',
  waiting: 'M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2ZM8 4.8v3.4l2.3 1.5',
  running: 'M8 2.2A5.8 5.8 0 1 1 2.2 8',
  route: 'M3 3v4.5A2.5 2.5 0 0 0 5.5 10H13m-3-3 3 3-3 3',
  shield: 'M8 1.8 13 3.6v4c0 3-2 5.2-5 6.6-3-1.4-5-3.6-5-6.6v-4z',
  warning: 'M8 2.4 14.2 13H1.8zM8 6.4v3.2m0 1.5v.6',
  info: 'M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2ZM8 7.2v4M8 4.7v.6',
  edit: 'm3 13 .6-2.8 7-7 2.2 2.2-7 7zM9.4 4.4l2.2 2.2',
  close: 'm4.5 4.5 7 7m0-7-7 7',
  retry: 'M12.8 8A4.8 4.8 0 1 1 11 4.3M11.4 1.8v2.9H8.5',
  down: 'M8 3v9.5m-4-4 4 4 4-4',
  chevron: 'm6 4 4 4-4 4',
  more: 'm4 6 4 4 4-4',
  attach:
    'M12.6 7.2 7.5 12.3a3.1 3.1 0 0 1-4.4-4.4l5.5-5.5a2.1 2.1 0 0 1 3 3L6.3 10.7a1.1 1.1 0 0 1-1.5-1.5l4.7-4.8',
  image: 'M2.2 3h11.6v10H2.2zm0 8 3.4-3.6 2.6 2.7 2-2 3.6 3.4M10 5.4h1.2v1.2H10z',
  diff: 'M8 2.5v6M5 5.5h6M5 12.5h6',
  undo: 'M3.2 8A4.8 4.8 0 1 0 5 4.3M4.6 1.8v2.9h2.9',
  branch: 'M4.5 2.5v11m0-3c4 0 7-1.5 7-6m-2 2 2-2 2 2',
  box: 'M2.5 5 8 2.2 13.5 5v6L8 13.8 2.5 11zM2.5 5 8 7.8 13.5 5M8 7.8v6',
  thought: 'M5.5 11.5a4.3 4.3 0 1 1 5 0V13h-5zM6.5 14.8h3',
  file: 'M4 1.8h5l3 3v9.4H4zM9 1.8v3h3',
  open: 'M3 3h10v10H3z',
  ticked: 'M3 3h10v10H3zm2.4 5.2 2 2L10.8 6',
} as const;

export type IconName = keyof typeof shapes;

/** Draws an icon as decoration only. The words beside it or a label say the same. */
export function Icon({ name }: { name: IconName }) {
  const filled = name === 'send' || name === 'stop';
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path
        d={shapes[name]}
        fill={filled ? 'currentColor' : 'none'}
        stroke={filled ? 'none' : 'currentColor'}
      />
    </svg>
  );
}
