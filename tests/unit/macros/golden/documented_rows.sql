create or replace temporary view `openmirroring_documented` (
    `id` comment 'It\'s\nthe key',
    `it's ``odd```,
    `day` comment 'a \\ day'
  ) as
  select 1 as `id`, 'a' as `status`
