//! Reads what the benches left, prints the table and writes `target/bench-table.jsonl`. `--markdown` prints it as it stands
//! in the README.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the table goes to standard output")]

use std::{fs, io, path::Path, process::ExitCode};

use bandgate_benches::{
    figures::Figures,
    report::{own_lines, target_dir},
    rows::{self, Line},
};

fn main() -> ExitCode {
    let show = match std::env::args().nth(1).as_deref() {
        None => print_lines,
        Some("--markdown") => print_markdown,
        Some(argument) => {
            println!("table: unknown argument {argument}; it takes --markdown or none");
            return ExitCode::FAILURE;
        }
    };
    match print(show) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("table: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(show: fn(&[Line])) -> io::Result<()> {
    let figures = Figures::read(&criterion_dir(), &own_lines())?;
    let lines: Vec<Line> = rows::ROWS.iter().map(|row| row.line(&figures)).collect();
    show(&lines);
    let met = lines.iter().filter(|line| line.met == Some(true)).count();
    let aimed = lines.iter().filter(|line| line.met.is_some()).count();
    println!("\n{met} of {aimed} targets met.");
    let far = lines.iter().filter(|line| line.times_target().is_some_and(|times| times > 2.0));
    println!("{} above twice their target.", far.count());
    for mark in rows::peers_off(&figures) {
        println!("MARKED: {mark}");
    }
    let path = table_path();
    let mut text = String::new();
    for line in &lines {
        text.push_str(&line.json().to_string());
        text.push('\n');
    }
    fs::write(&path, text)?;
    println!("written: {}", shortened(&path));
    Ok(())
}

fn print_lines(lines: &[Line]) {
    let head = ["id", "what", "ours", "peer", "", "ratio", "target", "met"].map(str::to_owned);
    let cells: Vec<[String; 8]> =
        core::iter::once(head).chain(lines.iter().map(Line::cells)).collect();
    let width =
        |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..8).map(width).collect();
    for row in &cells {
        let padded: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        println!("{}", padded.join("  ").trim_end());
    }
}

fn print_markdown(lines: &[Line]) {
    println!("| id | what | ours | peer | peer's | ratio | target | met |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for line in lines {
        println!("{}", line.markdown());
    }
    println!();
}

fn criterion_dir() -> std::path::PathBuf {
    target_dir().join("criterion")
}

fn table_path() -> std::path::PathBuf {
    target_dir().join("bench-table.jsonl")
}

fn shortened(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| format!("target/{}", name.to_string_lossy()))
}
