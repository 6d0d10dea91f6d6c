insert overwrite directory 'file:/lake/it\'s [odd]/rows' using text
  options (compression 'gzip', maxRecordsPerFile 0, lineSep '\r\u0000\n\u0000')
  select 'line' as line
