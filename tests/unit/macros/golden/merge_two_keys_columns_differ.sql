select
    case when DBT_INTERNAL_SOURCE.`id` is not null
      then DBT_INTERNAL_SOURCE.`id` else DBT_INTERNAL_DEST.`id` end as `id`,
    case when DBT_INTERNAL_SOURCE.`id` is not null
      then DBT_INTERNAL_SOURCE.`status` else DBT_INTERNAL_DEST.`status` end as `status`,
    case when DBT_INTERNAL_SOURCE.`id` is not null
      then DBT_INTERNAL_SOURCE.`added` else cast(null as double) end as `added`,
    DBT_INTERNAL_DEST.`missing` as `missing`,
    DBT_INTERNAL_DEST.`kept` as `kept`,
    case when DBT_INTERNAL_SOURCE.`id` is not null
      then DBT_INTERNAL_SOURCE.`it's ``odd``` else DBT_INTERNAL_DEST.`it's ``odd``` end as `it's ``odd```
  from `shop`.`orders` as DBT_INTERNAL_DEST
  left join (select * from `shop`.`new_rows` ) as DBT_INTERNAL_SOURCE on DBT_INTERNAL_SOURCE.`id` = DBT_INTERNAL_DEST.`id` and DBT_INTERNAL_SOURCE.`it's ``odd``` = DBT_INTERNAL_DEST.`it's ``odd```
  union all
  select
    DBT_INTERNAL_SOURCE.`id` as `id`,
    DBT_INTERNAL_SOURCE.`status` as `status`,
    DBT_INTERNAL_SOURCE.`added` as `added`,
    cast(null as int) as `missing`,
    DBT_INTERNAL_SOURCE.`kept` as `kept`,
    DBT_INTERNAL_SOURCE.`it's ``odd``` as `it's ``odd``` from (select * from `shop`.`new_rows` ) as DBT_INTERNAL_SOURCE
  left anti join `shop`.`orders` as DBT_INTERNAL_DEST on DBT_INTERNAL_SOURCE.`id` = DBT_INTERNAL_DEST.`id` and DBT_INTERNAL_SOURCE.`it's ``odd``` = DBT_INTERNAL_DEST.`it's ``odd```
