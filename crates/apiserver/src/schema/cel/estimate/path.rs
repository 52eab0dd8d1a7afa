//! The paths through a schema to the values of an expression.
//!
//! cel-go extends a path with `append`, which writes behind the end of the shorter path if there is room: two
//! paths that extend the same one can share their last step, which is then that of the later one.
//! An estimate depends on this. In `self.a.all(x, x.l.all(y, y == x.m))` the count of `x.l` is that of `x.m`.
//! So paths share their steps here too.

/// Maximum count of steps. A longer path leads to no part of a schema, because schemas are not as deep.
const STEPS_MAX: usize = 128;

/// The steps of several paths, with the room that Go would allocate.
struct Steps<'e> {
    steps: Vec<&'e str>,
    capacity: usize,
}

/// The paths of an expression.
#[derive(Default)]
pub(super) struct Paths<'e> {
    arrays: Vec<Steps<'e>>,
}

/// A path. The first step is a variable.
#[derive(Clone, Copy, Default)]
pub(super) struct Path {
    /// The index of the steps. Without effect for an empty path.
    array: usize,
    length: usize,
}

impl Path {
    const TOO_LONG: Path = Path {
        array: usize::MAX,
        length: usize::MAX,
    };

    pub(super) fn is_empty(self) -> bool {
        self.length == 0
    }
}

impl<'e> Paths<'e> {
    /// Returns the steps of a path, or `None` if it is empty or too long.
    pub(super) fn steps(&self, path: Path) -> Option<&[&'e str]> {
        self.arrays.get(path.array)?.steps.get(..path.length)
    }

    /// Returns the path with one more step.
    pub(super) fn append(&mut self, path: Path, step: &'e str) -> Path {
        if path.length >= STEPS_MAX {
            return Path::TOO_LONG;
        }
        let length = path.length + 1;
        if let Some(array) = self.arrays.get_mut(path.array)
            && !path.is_empty()
            && path.length < array.capacity
        {
            if let Some(known) = array.steps.get_mut(path.length) {
                *known = step;
            } else {
                array.steps.push(step);
            }
            return Path {
                array: path.array,
                length,
            };
        }
        let mut steps = Vec::with_capacity(length);
        steps.extend_from_slice(self.steps(path).unwrap_or_default());
        steps.push(step);
        self.arrays.push(Steps {
            steps,
            capacity: length.next_power_of_two(),
        });
        Path {
            array: self.arrays.len() - 1,
            length,
        }
    }
}
