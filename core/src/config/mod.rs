//! Stage `config`.
#![forbid(unsafe_code)]
pub mod fault;
mod node;
#[cfg(test)]
mod tests {
    #[test]
    fn probe() {
        for t in ["", "#x\n", "a: 1\nb: {c: [1, .nan, -5, 1e999, 99999999999999999999, 30s, 1Gi]}\na: 2\n20: x\nnull: y\n", "a: &x [1]\nb: *x\n", "\ta: 1", "a: 1\n---\nb: 2", "a: [", "a:\n\tb: 1", "a: b: c", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "? [a]\n: b\n", "x: !foo 3\n<<: {r: 1}\n", "a: ~\nb: True\nc: on\nd: 0x10\ne: 007\n", "a: \"\u{0}\"", "\u{feff}a: 1"] {
            println!("{t:?} => {:?}", super::node::parse(t));
        }
    }
}
