// Plots on a canvas: what does not move is drawn once, marks lie on top. Pointing and the arrow keys read the same
// values, and a line of text below the plot says them.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
const drawn = new Set();
const redraw = () => drawn.forEach((draw) => draw());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
const write = (pen, text, x, y, align = 'left') => {
  pen.fillStyle = css('soft');
  pen.textAlign = align;
  pen.fillText(text, x, y);
};

/**
 * A plot and its line. `spec` has label(), height(width), draw(pen, width, height) and mark(pen, at); to be pointed at,
 * also kind, hint, find(x, y), step(key, at), say(at), point(at) and perhaps pick(at), where `at` is the number of a
 * thing in the plot, and -1 none.
 */
const plot = (spec) => {
  const line = status(spec.hint);
  const base = make('canvas', {});
  let [at, seen, ratio] = [-1, 0, 1];
  const scaled = (canvas) => {
    const pen = canvas.getContext('2d');
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    if (canvas === node) pen.drawImage(base, 0, 0);
    pen.scale(ratio, ratio);
    return pen;
  };
  const mark = () => {
    if (base.width && seen) spec.mark(scaled(node), at);
  };
  const draw = () => {
    node.ariaLabel = spec.label();
    [seen, ratio] = [node.clientWidth, devicePixelRatio];
    drawn[seen ? 'add' : 'delete'](draw);
    if (!seen) return;
    const height = spec.height(seen);
    node.style.height = height + 'px';
    for (const canvas of [node, base]) {
      canvas.width = Math.round(seen * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = scaled(base);
    pen.font = '11px "DejaVu Sans", Verdana, sans-serif';
    spec.draw(pen, seen, height);
    mark();
  };
  const show = (to) => {
    at = to;
    mark();
  };
  const point = (to) => {
    if (to === at) return;
    show(to);
    line.textContent = to < 0 ? spec.hint : spec.say(to);
    spec.point(to);
  };
  const found = (event) => spec.find(event.offsetX, event.offsetY);
  const pick = (to) => {
    if (to < 0 || !spec.pick) return;
    spec.pick(to);
    line.textContent = spec.say(to) + ' Open below.';
  };
  const node = make('canvas', !spec.say ? {role: 'img'} : {
    tabindex: 0,
    role: 'application',
    'aria-roledescription': spec.kind,
    pointermove: (event) => point(found(event)),
    pointerleave: () => point(-1),
    click: (event) => pick(found(event)),
    keydown: (event) => {
      const pressed = event.key === 'Enter' || event.key === ' ';
      if (pressed) pick(at);
      const to = pressed || event.ctrlKey || event.altKey || event.metaKey ? -1 : spec.step(event.key, at);
      if (to >= 0) point(to);
      if (pressed || to >= 0) event.preventDefault();
    },
  });
  drawn.add(draw);
  // Also told when it comes onto the page and when it leaves it.
  new ResizeObserver(() => {
    if (node.clientWidth !== seen) draw();
  }).observe(node);
  return {node, line, show};
};

/** From values to places: logarithmic where they reach over more than a decade. */
const scale = (values, from, to) => {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!known(value)) continue;
    low = min(low, value);
    high = max(high, value);
  }
  const log = low > 0 && high >= 10 * low;
  const on = log ? Math.log : (value) => value;
  let [first, last] = [on(low), on(high)];
  if (!(last > first)) [first, last] = [first - 0.5, first + 0.5];
  const of = (value) => from + (on(value) - first) / (last - first) * (to - from);
  const ticks = [];
  if (log) {
    const digits = high < 60 * low ? [1, 2, 5] : [1];
    for (let decade = floor(Math.log10(low)); decade <= Math.log10(high); ++decade) {
      for (const digit of digits) ticks.push(digit * 10 ** decade);
    }
  } else if (high >= low) {
    const rough = (last - first) / 4;
    const power = 10 ** floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find((digit) => digit * power >= rough) || 10);
    for (let i = ceil(first / step); i * step <= last; ++i) ticks.push(i * step);
  }
  return {low, high, log, of, ticks: ticks.filter((tick) => !log || (tick >= low && tick <= high))};
};

/** Colours from low to high: a function of a number from 0 to 1. */
const ramp = (colours) => {
  const parts = colours.map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));
  return (share) => {
    const place = min(max(share, 0), 1) * (parts.length - 1);
    const low = min(floor(place), parts.length - 2);
    return `rgb(${parts[low].map((part, i) => Math.round(part + (parts[low + 1][i] - part) * (place - low)))})`;
  };
};

/** The nearest of many points, in pixels, within reach: -1 where there is none. A grid keeps the search short. */
const nearest = (x, y, width, height) => {
  const [size, reach] = [16, 24];
  const [columns, rows] = [ceil(width / size) + 1, ceil(height / size) + 1];
  const cell = (i) => floor(y[i] / size) * columns + floor(x[i] / size);
  const start = new Int32Array(columns * rows + 1);
  for (let i = 0; i < x.length; ++i) if (x[i] + y[i] >= 0) ++start[cell(i) + 1];
  for (let i = 0; i < columns * rows; ++i) start[i + 1] += start[i];
  const items = new Int32Array(x.length);
  for (let i = x.length; i--;) if (x[i] + y[i] >= 0) items[--start[cell(i) + 1]] = i;
  return (left, top) => {
    let [best, least] = [-1, reach * reach];
    for (let row = max(0, floor((top - reach) / size)); row < rows && row * size <= top + reach; ++row) {
      for (let column = max(0, floor((left - reach) / size));
        column < columns && column * size <= left + reach; ++column) {
        for (let i = start[row * columns + column]; i < start[row * columns + column + 1]; ++i) {
          const far = (x[items[i]] - left) ** 2 + (y[items[i]] - top) ** 2;
          if (far < least) [best, least] = [items[i], far];
        }
      }
    }
    return best;
  };
};

const ring = (pen, dots, at, colour) => {
  if (!(dots.x[at] + dots.y[at] >= 0)) return;
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(dots.x[at], dots.y[at], 6, 0, 7);
  pen.stroke();
};
const stroke = (pen, colour, thick, places) => {
  pen.strokeStyle = colour;
  pen.lineWidth = thick;
  pen.beginPath();
  for (const one of places) pen.lineTo(...one);
  pen.stroke();
};

/** Where a plot of points draws: x and y of each, in pixels; drawn into `pen` with axes. */
const points = (pen, width, height, data) => {
  const small = width < 260;
  const [left, top, right, bottom] = [small ? 34 : 46, 20, width - 10, height - (small ? 30 : 34)];
  const [across, up] = [scale(data.x, left + 6, right - 6), scale(data.y, bottom - 6, top + 6)];
  pen.strokeStyle = css('line');
  pen.strokeRect(left + 0.5, top + 0.5, right - left, bottom - top);
  let free = Infinity;
  for (const tick of up.ticks) {
    if (free - up.of(tick) < 12) continue;
    free = up.of(tick);
    write(pen, short(tick), left - 4, free + 4, 'right');
  }
  free = -Infinity;
  for (const tick of data.names ? data.x : across.ticks) {
    const name = data.names ? data.names[data.x.indexOf(tick)] : short(tick);
    const half = pen.measureText(name).width / 2;
    if (across.of(tick) - half < free + 6) continue;
    free = across.of(tick) + half;
    write(pen, name, across.of(tick), bottom + 13, 'center');
  }
  write(pen, data.across, right, bottom + (small ? 26 : 29), 'right');
  write(pen, data.up, 0, 11);
  const x = Float32Array.from(data.x, across.of);
  const y = Float32Array.from(data.y, up.of);
  const many = x.length > 3000;
  pen.globalAlpha = many ? 0.5 : 0.85;
  pen.strokeStyle = css('soft');  // dark dots are seen on a dark ground
  pen.lineWidth = 0.5;
  let last;
  for (let i = 0; i < x.length; ++i) {
    if (!(x[i] + y[i] >= 0)) continue;
    const colour = data.colour(i);
    if (colour !== last) pen.fillStyle = last = colour;  // setting it takes longer than drawing the point
    if (many) {
      pen.fillRect(x[i] - 1, y[i] - 1, 2, 2);
    } else {
      pen.beginPath();
      pen.arc(x[i], y[i], small ? 2 : 3.5, 0, 7);
      pen.fill();
      pen.stroke();
    }
  }
  pen.globalAlpha = 1;
  if (data.names) {
    stroke(pen, data.colour(0), 1.5, [...x].map((left, i) => [left, y[i]]).filter(([left, up]) => left + up >= 0));
  }
  return {x, y};
};

/**
 * A plot of cells in rows from below. `spec` is a plot's, without kind and what follows from grid(), the cells: their
 * rows (names), columns (a number, with or without names, and with left, the room for names of rows), values, shades
 * (see ramp), range (values of its ends), axes (their names), the chosen cell; and of the number of a cell off(),
 * whether it has no colour, and crossed().
 */
const heatMap = (spec) => {
  let grid, left, bottom, wide, high;
  const row = (at) => floor(at / grid.columns);
  const cell = (column, row) =>
    column >= 0 && column < grid.columns && row in grid.rows ? row * grid.columns + column : -1;
  return plot({
    kind: 'heat map',
    height: () => {
      grid = spec.grid();
      return max(2, min(22, 400 / grid.rows.length)) * grid.rows.length + 66;
    },
    draw: (pen, width, height) => {
      [left, bottom] = [grid.left || 30, height - 58];
      [wide, high] = [(width - left - 2) / grid.columns, (bottom - 4) / grid.rows.length];
      const shade = scale(grid.range, 0, 1);
      const gap = min(wide, high) > 6 ? 1 : 0;
      grid.values.forEach((value, at) => {
        const [from, to] = [left + at % grid.columns * wide, bottom - (row(at) + 1) * high];
        pen.fillStyle = grid.off(at) ? css('line') : known(value) ? grid.shades(shade.of(value)) : css('wash');
        pen.fillRect(from, to, wide - gap, high - gap);
        if (grid.crossed(at)) stroke(pen, css('soft'), 1, [[from, to + high - gap], [from + wide - gap, to]]);
      });
      grid.rows.forEach((name, at) => {
        if (at % ceil(13 / high) === 0) write(pen, name, left - 5, bottom - (at + 0.5) * high + 4, 'right');
      });
      for (let at = 0; at < grid.columns; at += ceil((grid.names ? 60 : 18) / wide)) {
        write(pen, grid.names?.[at] ?? at, left + (at + 0.5) * wide, bottom + 14, 'center');
      }
      if (shade.high >= shade.low) {
        const [start, end] = [max(width - 240, 145), width - 70];
        for (let i = start; i < end; ++i) {
          pen.fillStyle = grid.shades((i - start) / (end - start));
          pen.fillRect(i, bottom + 28, 1.5, 9);
        }
        write(pen, short(shade.low), start - 6, bottom + 37, 'right');
        write(pen, short(shade.high), end + 6, bottom + 37);
        write(pen, shade.log ? 'logarithmic' : '', start, bottom + 51);
      }
      write(pen, grid.axes, 0, bottom + 37);
    },
    mark: (pen, at) => {
      for (const cell of at < 0 ? [grid.chosen] : [grid.chosen, at]) {
        const frame = (colour, thick) => {
          pen.strokeStyle = colour;
          pen.lineWidth = thick;
          pen.strokeRect(left + cell % grid.columns * wide - 0.5, bottom - (row(cell) + 1) * high - 0.5, wide, high);
        };
        frame(css('ground'), 4);
        frame(css(cell === grid.chosen ? 'ink' : 'accent'), 2);
      }
    },
    find: (x, y) => cell(floor((x - left) / wide), floor((bottom - y) / high)),
    step: (key, at) => {
      const [right, up] = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[key] || [];
      if (up === undefined) return {Home: 0, End: grid.values.length - 1}[key] ?? -1;
      return at < 0 ? grid.chosen : cell(at % grid.columns + right, row(at) + up);
    },
    ...spec,
  });
};
