#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::BufReader;

use super::{Format, MAX_LINE, Trace, TraceReader, TraceRow};

const GENERIC: &str = "t_ms,band,tenant,key,input_tokens,output_tokens";

fn read(text: &str) -> Trace {
    Trace::read(text.as_bytes()).unwrap()
}

/// The error as the command prints it.
fn error(text: &str) -> String {
    Trace::read(text.as_bytes()).unwrap_err().to_string()
}

fn bare(t_ns: u64, input_tokens: u32, output_tokens: u32) -> TraceRow {
    TraceRow {
        t_ns,
        band_priority: None,
        tenant: None,
        key: None,
        session: None,
        input_tokens,
        output_tokens,
    }
}

#[test]
fn azure_rows_read_with_either_line_end_a_mark_and_no_final_newline() {
    let lines = [
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        "2023-11-16 18:17:03.9799600,4808,10",
        "2023-11-16 18:17:04.0319600,3180,8",
        "2023-11-16 18:17:04.0319600,0,1",
    ];
    let expected = vec![bare(0, 4808, 10), bare(52_000_000, 3180, 8), bare(52_000_000, 0, 1)];
    for end in ["\n", "\r\n"] {
        for (before, after) in [("", ""), ("", end), ("\u{feff}", "")] {
            let trace = read(&format!("{before}{}{after}", lines.join(end)));
            assert_eq!(trace.format, Format::Azure);
            assert_eq!(trace.rows, expected);
        }
    }
}

#[test]
fn servegen_clients_become_tenants() {
    let trace =
        read("t_ms,client,input_tokens,output_tokens\n170,59,99,79\n173.5,4,94,67\n174,59,1,1\n");
    assert_eq!(trace.format, Format::ServeGen);
    assert_eq!(trace.rows[1], TraceRow { tenant: Some(1), ..bare(3_500_000, 94, 67) });
    assert_eq!(trace.rows[2].tenant, trace.rows[0].tenant);
    assert_eq!(trace.tenants.get(0), Some("59"));
    assert_eq!(trace.tenants.len(), 2);
}

#[test]
fn generic_rows_carry_everything_and_empty_names_are_none() {
    let trace =
        read(&format!("{GENERIC},session\n5,20,acme,k1,10,2,s\n6,-3,acme,k2,1,0,\n6,,,,0,1,s"));
    assert_eq!(trace.format, Format::Generic { session: true });
    let names = |row: &TraceRow| (row.band_priority, row.tenant, row.key, row.session);
    assert_eq!(names(&trace.rows[0]), (Some(20), Some(0), Some(0), Some(0)));
    assert_eq!(names(&trace.rows[1]), (Some(-3), Some(0), Some(1), None));
    assert_eq!(names(&trace.rows[2]), (None, None, None, Some(0)));
    assert_eq!(read(&format!("{GENERIC}\n5,20,acme,k1,10,2")).rows[0].session, None);
}

#[test]
fn a_file_that_is_no_trace_is_told_what_a_header_looks_like() {
    let headers = "expected one of the header lines \"TIMESTAMP,ContextTokens,GeneratedTokens\", \
                   \"t_ms,client,input_tokens,output_tokens\", \
                   \"t_ms,band,tenant,key,input_tokens,output_tokens\" and \
                   \"t_ms,band,tenant,key,input_tokens,output_tokens,session\"";
    assert_eq!(error(""), format!("line 1: {headers}, got an empty file"));
    assert_eq!(error("a,b\n1,2\n"), format!("line 1: {headers}, got \"a,b\""));
    assert_eq!(error("\n"), format!("line 1: {headers}, got \"\""));
}

#[test]
fn a_trace_without_rows_is_refused() {
    assert_eq!(
        error("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"),
        "line 2: expected at least one row, got the end of the file"
    );
}

#[test]
fn each_broken_azure_line_names_its_line_and_what_belongs_there() {
    let stamp = "TIMESTAMP as YYYY-MM-DD HH:MM:SS with at most 9 decimals, years 1970..=2261";
    let context = "ContextTokens as a whole number 0..=4294967295";
    let generated = "GeneratedTokens as a whole number 0..=4294967295";
    let time = "2023-11-16 18:17:04.0319600";
    for (bad, expected, got) in [
        ("yesterday,1,1".to_owned(), stamp, "\"yesterday\""),
        ("2023-02-30 18:17:04,1,1".to_owned(), stamp, "\"2023-02-30 18:17:04\""),
        (format!("{time},-1,1"), context, "\"-1\""),
        (format!("{time},NaN,1"), context, "\"NaN\""),
        (format!("{time},4294967296,1"), context, "\"4294967296\""),
        (format!("{time},1,1.5"), generated, "\"1.5\""),
        (format!("{time},1,+5"), generated, "\"+5\""),
        (format!("{time},1,"), generated, "\"\""),
        (format!("{time},1, 2"), generated, "\" 2\""),
    ] {
        let text = format!(
            "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03,1,1\r\n{bad}\r\n{time},1,1"
        );
        assert_eq!(error(&text), format!("line 3: expected {expected}, got {got}"));
    }
}

#[test]
fn each_broken_generic_line_names_its_line_and_what_belongs_there() {
    let ms = "t_ms in milliseconds, 0..=18446744073709, with at most 6 decimals";
    let band = "band as a priority -2147483648..=2147483647 or empty";
    for (bad, expected, got) in [
        ("-1,0,a,k,1,1", ms, "\"-1\""),
        ("NaN,0,a,k,1,1", ms, "\"NaN\""),
        ("inf,0,a,k,1,1", ms, "\"inf\""),
        ("1e3,0,a,k,1,1", ms, "\"1e3\""),
        ("1.0000001,0,a,k,1,1", ms, "\"1.0000001\""),
        ("1.,0,a,k,1,1", ms, "\"1.\""),
        ("18446744073710,0,a,k,1,1", ms, "\"18446744073710\""),
        ("99999999999999999999,0,a,k,1,1", ms, "\"99999999999999999999\""),
        ("1,high,a,k,1,1", band, "\"high\""),
        ("1,2147483648,a,k,1,1", band, "\"2147483648\""),
    ] {
        let text = format!("{GENERIC}\n0,0,a,k,1,1\n{bad}\n");
        assert_eq!(error(&text), format!("line 3: expected {expected}, got {got}"));
    }
    assert_eq!(
        error("t_ms,client,input_tokens,output_tokens\n1,,1,1"),
        "line 2: expected a client (not empty), got \"\""
    );
}

#[test]
fn lines_with_the_wrong_shape_are_refused() {
    let at = |bad: &str| error(&format!("{GENERIC}\n0,0,a,k,1,1\n{bad}\n1,0,a,k,1,1"));
    assert_eq!(at("1,2"), format!("line 3: expected 6 fields ({GENERIC}), got 2: \"1,2\""));
    assert_eq!(
        at("1,0,a,k,1,1,s"),
        format!("line 3: expected 6 fields ({GENERIC}), got 7: \"1,0,a,k,1,1,s\"")
    );
    assert_eq!(at(""), "line 3: expected a row, got an empty line");
    assert_eq!(
        at("1,0,\"a\",k,1,1"),
        "line 3: expected plain fields without quotes, got \"1,0,\\\"a\\\",k,1,1\""
    );
    let long = format!("1,0,{},k,1,1", "a".repeat(MAX_LINE));
    assert_eq!(
        at(&long),
        format!("line 3: expected a line of at most {MAX_LINE} bytes, got a longer one")
    );
}

#[test]
fn a_line_of_exactly_the_limit_is_read() {
    let row = "0,0,,k,1,1\n";
    let name = "a".repeat(MAX_LINE - row.len());
    let trace = read(&format!("{GENERIC}\n0,0,{name},k,1,1\n"));
    assert_eq!(trace.tenants.get(0), Some(name.as_str()));
    let longer = format!("{GENERIC}\n0,0,{name}b,k,1,1\n");
    assert!(error(&longer).starts_with("line 2: expected a line of at most"));
}

#[test]
fn unsorted_times_are_refused() {
    assert_eq!(
        error(&format!("{GENERIC}\n5,0,a,k,1,1\n7,0,a,k,1,1\n6.5,0,a,k,1,1")),
        "line 4: expected a time not before the one of the row above (rows sorted by time), got \"6.5\""
    );
}

#[test]
fn a_cost_of_zero_or_beyond_32_bits_is_refused() {
    let expected = "expected input and output tokens that sum to 1..=4294967295 (the cost)";
    assert_eq!(
        error(&format!("{GENERIC}\n0,0,a,k,0,0")),
        format!("line 2: {expected}, got cost 0")
    );
    assert_eq!(
        error(&format!("{GENERIC}\n0,0,a,k,4294967295,1")),
        format!("line 2: {expected}, got 4294967295 and 1")
    );
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut text = format!("{GENERIC}\n0,0,").into_bytes();
    text.extend_from_slice(b"\xff\xfe,k,1,1\n");
    let got = Trace::read(&text[..]).unwrap_err();
    assert_eq!((got.line, got.expected.as_str()), (2, "UTF-8 text"));
}

#[test]
fn a_reader_streams_and_ends_after_its_first_error() {
    let text = format!("{GENERIC}\n0,0,a,k,1,1\nbroken\n1,0,a,k,1,1");
    let small = BufReader::with_capacity(7, text.as_bytes());
    let mut reader = TraceReader::open(small).unwrap();
    assert!(reader.next().unwrap().is_ok());
    assert_eq!(reader.next().unwrap().unwrap_err().line, 3);
    assert!(reader.next().is_none());
}

#[test]
fn long_fields_are_shortened_in_errors_and_control_characters_escaped() {
    let text = format!("{GENERIC}\n\u{1b}[31m{},0,a,k,1,1", "9".repeat(200));
    let got = Trace::read(text.as_bytes()).unwrap_err().got;
    assert!(got.len() < 90 && got.ends_with("...\"") && got.contains("\\u{1b}"), "{got}");
}

#[test]
fn the_committed_traces_read_whole() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/traces/");
    for (name, format, rows, last_ns) in [
        ("AzureLLMInferenceTrace_code.csv", Format::Azure, 8_819, 3_435_948_056_000),
        ("AzureLLMInferenceTrace_conv.csv", Format::Azure, 19_366, 3_501_721_937_000),
        ("servegen_mlarge_peakhour_sample.csv", Format::ServeGen, 35_992, 3_599_788_000_000),
    ] {
        let file = std::fs::File::open(format!("{dir}{name}")).unwrap();
        let trace = Trace::read(BufReader::new(file)).unwrap();
        assert_eq!((trace.format, trace.rows.len()), (format, rows), "{name}");
        assert_eq!(trace.rows.last().unwrap().t_ns, last_ns, "{name}");
    }
}
