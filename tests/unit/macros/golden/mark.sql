alter table `shop`.`orders__next` set tblproperties ('openmirroring.held' = '1', 'it\'s' = 'a \'word\'')
