//! `runs.parquet`: the table of all runs in Apache Parquet
//! (<https://parquet.apache.org/docs/file-format/>), which pandas, Polars, DuckDB and R can read.
//!
//! The crate `parquet` supports the whole format and has a dozen dependencies. A table with eight
//! columns of three types needs little of it: uncompressed pages, and dictionaries for strings.
//! `bindings/python/tests/test_lab_tables.py` reads it with three other programs.
//!
//! | file | purpose |
//! | --- | --- |
//! | `metadata` | the footer: row groups and columns |
//! | `pages` | encoding of values |
//! | `thrift` | encoding of headers and footer |

mod metadata;
mod pages;
mod thrift;

use std::ops::Range;

use self::metadata::{ColumnChunk, ColumnKind, RowGroup};
use super::ResultsTable;

/// The magic number at the start and the end of a file.
const MAGIC: &[u8; 4] = b"PAR1";
/// Rows per group: what a reader loads into memory at a time.
const GROUP: usize = 1 << 20;

impl ResultsTable {
    /// Returns the table as a Parquet file. A value that a run lacks is null.
    #[must_use]
    pub fn to_parquet(&self) -> Vec<u8> {
        self.parquet(GROUP)
    }

    fn parquet(&self, rows_of_group: usize) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        let mut groups = Vec::new();
        for start in (0..self.len()).step_by(rows_of_group) {
            let rows = start..self.len().min(start + rows_of_group);
            groups.push(self.group(rows, &mut file));
        }
        let footer = metadata::footer(self.len(), &groups);
        file.extend(&footer);
        file.extend(u32::try_from(footer.len()).unwrap_or(u32::MAX).to_le_bytes());
        file.extend(MAGIC);
        file
    }

    /// Writes some rows, column by column.
    fn group(&self, rows: Range<usize>, file: &mut Vec<u8>) -> RowGroup {
        let count = rows.len();
        let whole: Vec<u8> =
            self.seed[rows.clone()].iter().flat_map(|seed| seed.to_le_bytes()).collect();
        let columns = vec![
            texts(&self.point[rows.clone()], file),
            texts(&self.scene[rows.clone()], file),
            texts(&self.curve[rows.clone()], file),
            plain(ColumnKind::Double, count, &pages::doubles(&self.x[rows.clone()]), file),
            plain(ColumnKind::Whole, count, &whole, file),
            texts(&self.measure[rows.clone()], file),
            texts(&self.unit[rows.clone()], file),
            plain(ColumnKind::MaybeDouble, count, &pages::maybe_doubles(&self.value[rows]), file),
        ];
        RowGroup { rows: count, columns }
    }
}

/// Writes a column of strings: each string once, then the index of each row.
fn texts(texts: &[String], file: &mut Vec<u8>) -> ColumnChunk {
    let (dictionary, places) = pages::dictionary(texts);
    let start = file.len();
    metadata::dictionary_header(dictionary.len(), dictionary.texts, file);
    file.extend(&dictionary.bytes);
    let data = file.len();
    metadata::page_header(places.len(), texts.len(), ColumnKind::Text, file);
    file.extend(&places);
    ColumnChunk { rows: texts.len(), dictionary: Some(start), data, end: file.len() }
}

fn plain(kind: ColumnKind, rows: usize, values: &[u8], file: &mut Vec<u8>) -> ColumnChunk {
    let data = file.len();
    metadata::page_header(values.len(), rows, kind, file);
    file.extend(values);
    ColumnChunk { rows, dictionary: None, data, end: file.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: usize) -> ResultsTable {
        let text = |text: &str| vec![text.to_owned(); rows];
        ResultsTable {
            point: (0..rows).map(|row| format!("p{}", row / 2)).collect(),
            scene: text(""),
            curve: text("c"),
            x: vec![1.5; rows],
            seed: (1..).take(rows).collect(),
            measure: text("throughput"),
            unit: text("Mbit/s"),
            value: (0..rows).map(|row| (row > 0).then_some(row as f64)).collect(),
        }
    }

    #[test]
    fn the_footer_is_where_readers_expect_it() {
        for rows in [0, 1, 9] {
            let file = table(rows).to_parquet();
            let (rest, magic) = file.split_last_chunk::<4>().unwrap();
            let (rest, length) = rest.split_last_chunk::<4>().unwrap();
            assert_eq!((&file[..4], magic), (&MAGIC[..], MAGIC));
            let footer = &rest[rest.len() - u32::from_le_bytes(*length) as usize..];
            for name in ResultsTable::COLUMNS {
                assert!(footer.windows(name.len()).any(|window| window == name.as_bytes()));
            }
        }
    }

    #[test]
    fn many_rows_go_into_several_groups() {
        let table = table(9);
        // Nine rows by four are three groups, and each has the text of its own dictionary.
        let seen = |file: &[u8]| {
            let needle = b"throughput";
            file.windows(needle.len()).filter(|window| window == needle).count()
        };
        assert_eq!(seen(&table.parquet(4)), 3);
        assert_eq!(seen(&table.to_parquet()), 1);
    }
}
