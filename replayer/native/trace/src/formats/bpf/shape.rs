//! How the probe records one call (`struct shape` of its source).

/// What is read beside numbers and paths: the values of the probe's source.
#[rustfmt::skip]
const BESIDE: &[(u8, u8)] = &[
    (b'=', 1), (b'+', 2), (b'~', 3), (b'i', 4), (b'I', 5), (b'n', 6), (b'L', 7), (b'T', 8), (b'V', 8), (b'h', 9), (b't', 10), (b'c', 11),
    (b'P', 12), (b'w', 13), (b'*', 14), (b'S', 15), (b'a', 16), (b'v', 17), (b'%', 18), (b'e', 19), (b'O', 20), (b'E', 21), (b'N', 10),
    (b'U', 10), (b'y', 11), (b'r', 12),
];

/// Whether an argument is kept as a number.
pub(super) fn is_number(letter: u8) -> bool {
    b"dluxomkqfLjJHpz".contains(&letter)
}

/// One call of the probe's table.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    recorded: u8,
    filter: u8,
    args: u8,
    arg: [u8; 6],
    path: [u8; 2],
    beside: u8,
    beside_arg: u8,
}

impl Shape {
    pub(super) fn of(name: &str, letters: &[u8]) -> Self {
        let mut shape = Self {
            recorded: if letters == b"!" { 2 } else { 1 },
            filter: match name {
                "mmap" | "mmap2" => 1,
                "futex" | "futex_time64" => 2,
                "socketcall" => 3,
                "io_submit" => 4,
                _ => 0,
            },
            ..Self::default()
        };
        let mut paths = 0;
        for (at, &letter) in (0_u8..).zip(letters) {
            if is_number(letter) {
                if let Some(place) = shape.arg.get_mut(usize::from(shape.args)) {
                    *place = at;
                    shape.args += 1;
                }
            } else if letter == b's'
                && let Some(place) = shape.path.get_mut(paths)
            {
                *place = at + 1;
                paths += 1;
            }
            let code = BESIDE.iter().find(|(own, _)| *own == letter);
            if let (0, Some(&(_, code))) = (shape.beside, code) {
                shape.beside = code;
                shape.beside_arg = at;
            }
        }
        shape
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![self.recorded, self.filter, self.args];
        bytes.extend(self.arg);
        bytes.extend(self.path);
        bytes.extend([self.beside, self.beside_arg, 0, 0, 0]);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_become_what_the_probe_reads() {
        let shape = Shape::of("newfstatat", b"ds=x");
        assert_eq!(
            shape.bytes(),
            [1, 0, 2, 0, 3, 0, 0, 0, 0, 2, 0, 1, 2, 0, 0, 0]
        );
        let shape = Shape::of("renameat2", b"dsdsx");
        assert_eq!(
            shape.bytes(),
            [1, 0, 3, 0, 2, 4, 0, 0, 0, 2, 4, 0, 0, 0, 0, 0]
        );
    }
}
