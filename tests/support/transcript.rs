//! Transcripts: the statements typed at the prompt of a client, and its output.

/// The statements after `mysql> `, each with the lines after it.
pub fn expected<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut answers: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in lines {
        match (line.strip_prefix("mysql> "), answers.last_mut()) {
            (Some(statement), _) => answers.push((statement, Vec::new())),
            (None, Some((_, answer))) => answer.push(line),
            (None, None) => panic!("expected a statement at the beginning of the transcript, got {line}"),
        }
    }
    answers
}

/// The output of a client with -t -vvv: each echoed statement with its result.
pub fn printed(text: &str) -> Vec<(String, Vec<String>)> {
    let mut answers: Vec<(String, Vec<String>)> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "--------------" {
            let statement: Vec<_> = lines.by_ref().take_while(|line| *line != "--------------").collect();
            answers.push((statement.join("\n"), Vec::new()));
        } else if let Some((_, answer)) = answers.last_mut()
            && !line.is_empty()
            && line != "Bye"
        {
            answer.push(line.to_owned());
        }
    }
    answers
}

/// A line with placeholders for dates, times and durations, which differ from run to run.
pub fn timeless(line: &str) -> String {
    let mut line = line.to_owned();
    if let Some(at) = line.find(" sec)") {
        let from = line[..at].rfind('(').expect("a bracket before it");
        line.replace_range(from + 1..at, "0.00");
    }
    let has_two = |mark, length, word: &str| word.len() == length && word.matches(mark).count() == 2;
    let word = |word| match word {
        date if has_two('-', 10, date) => "some date",
        time if has_two(':', 8, time) => "and time",
        other => other,
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
